"""The calibration as a PNG: the two histograms, and under them what each floor loses and lets through."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

from serving.evaluation.score_floors import BINS, Calibration, Spread

SIZE = WIDTH, HEIGHT = 960, 720
LEFT, RIGHT = 80, 30
INK, PALE = "#222222", "#d9d9d9"
# Told apart also by people who do not see red and green as two (Okabe and Ito).
ANSWERABLE, UNANSWERABLE = "#0072b2", "#d55e00"

Box = tuple[float, float, float, float]
"""Left, top, right and bottom in pixels."""


def write_png(found: Calibration, path: Path) -> None:
    """Draws a calibration. Raises ``OSError`` when the file cannot be written."""
    image = Image.new("RGB", SIZE, "white")
    canvas = _Canvas(ImageDraw.Draw(image))
    upper: Box = (LEFT, 70, WIDTH - RIGHT, 350)
    lower: Box = (LEFT, 420, WIDTH - RIGHT, 660)
    counted = f"{found.answerable.mean.n} answerable, {0 if found.unanswerable is None else found.unanswerable.mean.n}"
    canvas.write(LEFT, 14, f"Best passage's score: {counted} unanswerable questions", size=20)
    canvas.write(LEFT, 42, "answerable", ANSWERABLE)
    canvas.write(LEFT + 110, 42, "unanswerable", UNANSWERABLE)
    _histograms(canvas, upper, found)
    _curves(canvas, lower, found)
    for name, floor in (("now", found.current.loss.floor), ("new", found.proposal.setting)):
        canvas.mark(upper, lower, floor, f"{name} {floor:g}", above=name == "new")
    canvas.write(WIDTH / 2, HEIGHT - 14, "score, or a floor under it", anchor="mm")
    image.save(path, format="PNG")


class _Canvas:
    """Text and axes on a drawing; ``x`` of a score is the same in every box."""

    def __init__(self, draw: ImageDraw.ImageDraw) -> None:
        self.draw = draw

    def write(self, x: float, y: float, text: str, colour: str = INK, *, size: int = 15, anchor: str = "la") -> None:
        self.draw.text((x, y), text, fill=colour, font=ImageFont.load_default(size), anchor=anchor)

    def axes(self, box: Box, title: str, top: float) -> None:
        """Frame, a scale of percent from 0 to ``top`` and one of scores from 0 to 1."""
        left, _, right, bottom = box
        for tenth in range(11):
            x = across(box, tenth / 10)
            self.draw.line((x, bottom, x, bottom + 5), fill=INK)
            self.write(x, bottom + 8, f"{tenth / 10:.1f}", size=13, anchor="ma")
        for quarter in range(5):
            share = top * quarter / 4
            y = up(box, share / top)
            self.draw.line((left, y, right, y), fill=PALE if quarter else INK)
            self.write(left - 8, y, f"{100 * share:.0f} %", size=13, anchor="rm")
        self.write(right, box[1] - 6, title, anchor="rd")

    def mark(self, upper: Box, lower: Box, floor: float, text: str, *, above: bool) -> None:
        """A dashed line through both boxes, and what it is."""
        x = across(upper, floor)
        for y in range(int(upper[1]), int(lower[3]), 10):
            if y < upper[3] or y >= lower[1]:
                self.draw.line((x, y, x, y + 5), fill=INK, width=2)
        self.write(x + 5, upper[3] + (50 if above else 28), text)


def across(box: Box, score: float) -> float:
    return box[0] + score * (box[2] - box[0])


def up(box: Box, share: float) -> float:
    return box[3] - share * (box[3] - box[1])


def _histograms(canvas: _Canvas, box: Box, found: Calibration) -> None:
    yes, no = _shares(found.answerable), _shares(found.unanswerable)
    top = max(*yes, *no)
    canvas.axes(box, "share of each kind, by score", top)
    half = (box[2] - box[0]) / BINS / 2
    for place in range(BINS):
        x = across(box, place / BINS)
        for offset, share, colour in ((1, yes[place], ANSWERABLE), (half, no[place], UNANSWERABLE)):
            if share:
                canvas.draw.rectangle(
                    (x + offset, up(box, share / top), x + offset + half - 2, box[3] - 1), fill=colour
                )


def _curves(canvas: _Canvas, box: Box, found: Calibration) -> None:
    canvas.axes(box, "lost of answerable; let through of unanswerable, by floor", 1.0)
    lost = [(loss.floor, loss.lost.value) for loss in found.floors]
    through = [(loss.floor, loss.let_through.value) for loss in found.floors]
    for points, colour in ((lost, ANSWERABLE), (through, UNANSWERABLE)):
        drawn = [(across(box, floor), up(box, share)) for floor, share in points if share is not None]
        if drawn:
            canvas.draw.line(drawn, fill=colour, width=3, joint="curve")


def _shares(spread: Spread | None) -> Sequence[float]:
    return [0.0] * BINS if spread is None else [count / spread.mean.n for count in spread.histogram]
