"""Small plots as inline SVG: lines, bars of quantiles, a reliability diagram. Text in, text out; nothing is loaded.

Colours come from the page's CSS classes, so that a plot is readable on a dark screen and in print.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 460, 260
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 14, 12, 42
_TICKS = 5


@dataclass(frozen=True, slots=True)
class Axis:
    """A scale from ``low`` to ``high`` with a label."""

    label: str
    low: float
    high: float

    def share(self, value: float) -> float:
        """Where a value lies on the axis, 0 to 1; values beyond it lie at its end."""
        span = self.high - self.low
        return min(1.0, max(0.0, (value - self.low) / span)) if span > 0 else 0.5


@dataclass(frozen=True, slots=True)
class Spread:
    """A point with its interval, where it has one."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None


def line(points: Sequence[Spread], x: Axis, y: Axis, title: str, *, diagonal: bool = False) -> str:
    """Points joined by a line, with whiskers where they have intervals; ``diagonal`` draws x = y for comparison."""
    parts = [_frame(x, y)]
    if diagonal:
        parts.append(_segment(_x(x, x.low), _y(y, x.low), _x(x, x.high), _y(y, x.high), "guide"))
    path = " ".join(f"{_x(x, point.x):.1f},{_y(y, point.y):.1f}" for point in points)
    if len(points) > 1:
        parts.append(f'<polyline class="curve" points="{path}"/>')
    for point in points:
        at = _x(x, point.x)
        if point.low is not None and point.high is not None:
            parts.append(_segment(at, _y(y, point.low), at, _y(y, point.high), "whisker"))
        said = f"{x.label} {point.x:.3g}, {y.label} {point.y:.3g}"
        parts.append(
            f'<circle class="dot" cx="{at:.1f}" cy="{_y(y, point.y):.1f}" r="3"><title>{escape(said)}</title></circle>'
        )
    return _svg(parts, title)


@dataclass(frozen=True, slots=True)
class Bar:
    """One row of a bar chart: a thick part up to ``value``, a thin one up to ``reach``."""

    label: str
    value: float
    reach: float


def bars(rows: Sequence[Bar], unit: str, title: str) -> str:
    """Horizontal bars, one a row, scaled to the longest reach."""
    longest = max((row.reach for row in rows), default=0.0) or 1.0
    height = 30 * len(rows) + 8
    space = WIDTH - 90 - 96
    parts: list[str] = []
    for number, row in enumerate(rows):
        top = 30 * number + 8
        thick, thin = row.value / longest * space, row.reach / longest * space
        parts.append(f'<text x="84" y="{top + 13}" text-anchor="end">{escape(row.label)}</text>')
        parts.append(f'<rect class="thin" x="90" y="{top + 6}" width="{thin:.1f}" height="6"/>')
        parts.append(f'<rect class="thick" x="90" y="{top}" width="{thick:.1f}" height="18"/>')
        said = f"{_short(row.value)} / {_short(row.reach)} {unit}"
        parts.append(f'<text x="{90 + max(thick, thin) + 5:.1f}" y="{top + 13}">{escape(said)}</text>')
    return _svg(parts, title, height)


def _svg(parts: Sequence[str], title: str, height: int = HEIGHT) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(title, quote=True)}">'
        f"<title>{escape(title)}</title>{''.join(parts)}</svg>"
    )


def _frame(x: Axis, y: Axis) -> str:
    parts: list[str] = []
    for tick in range(_TICKS + 1):
        share = tick / _TICKS
        across, up = x.low + share * (x.high - x.low), y.low + share * (y.high - y.low)
        parts.append(_segment(_LEFT, _y(y, up), WIDTH - _RIGHT, _y(y, up), "grid"))
        parts.append(f'<text x="{_LEFT - 6}" y="{_y(y, up) + 4:.1f}" text-anchor="end">{_short(up)}</text>')
        parts.append(
            f'<text x="{_x(x, across):.1f}" y="{HEIGHT - _BOTTOM + 16}" text-anchor="middle">{_short(across)}</text>'
        )
    middle = (_LEFT + WIDTH - _RIGHT) / 2
    parts.append(f'<text x="{middle}" y="{HEIGHT - 6}" text-anchor="middle">{escape(x.label)}</text>')
    parts.append(
        f'<text x="12" y="{HEIGHT / 2 - 16}" text-anchor="middle" transform="rotate(-90 12 {HEIGHT / 2 - 16})">'
        f"{escape(y.label)}</text>"
    )
    return "".join(parts)


def _segment(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _x(axis: Axis, value: float) -> float:
    return _LEFT + axis.share(value) * (WIDTH - _LEFT - _RIGHT)


def _y(axis: Axis, value: float) -> float:
    return HEIGHT - _BOTTOM - axis.share(value) * (HEIGHT - _TOP - _BOTTOM)


def _short(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
