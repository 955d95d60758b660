"""Grounding metadata in Gemini's shape: byte-offset supports, markers written from them, and the check that both hold.

Spans are half-open UTF-8 byte ranges (Gemini API, ``groundingMetadata.groundingSupports[].segment``). Consumers that
count otherwise get code-point and UTF-16 offsets beside them, under their own names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from serving.answer.errors import (
    EmptySupportError,
    SegmentTextMismatchError,
    SpanOutOfRangeError,
    SpanSplitsCharacterError,
    UnknownChunkError,
)
from serving.answer.sentences import terminator_start
from serving.answer.types import Passage, Span, Support
from serving.answer.wire import (
    Grounding,
    GroundingChunk,
    GroundingSupport,
    RetrievedContext,
    Segment,
    Spans,
    WebChunk,
)

_LONGEST_CLOSING = 64


def spans_in_all_units(text: str, spans: Sequence[Span]) -> list[Spans]:
    """Converts byte spans of ``text`` to code points and UTF-16 units too, in O(n + k log k).

    Raises :class:`SpanOutOfRangeError` or :class:`SpanSplitsCharacterError`.
    """
    data = text.encode()
    units: dict[int, tuple[int, int]] = {}
    at = code_points = utf16 = 0
    for offset in sorted({offset for span in spans for offset in span}):
        piece = _decode(data, at, offset)
        code_points += len(piece)
        utf16 += len(piece.encode("utf-16-le")) // 2
        units[offset] = (code_points, utf16)
        at = offset
    return [
        Spans(
            utf8=(start, end),
            code_point=(units[start][0], units[end][0]),
            utf16=(units[start][1], units[end][1]),
        )
        for start, end in spans
    ]


def _decode(data: bytes, start: int, end: int) -> str:
    _check_range(data, Span(start, end))
    return data[start:end].decode()


def insert(text: str, supports: Sequence[Support]) -> str:
    """Writes each support's markers (chunk + 1) inside its span, before the terminator and closing quotes.

    Supports that end together make one run, ascending and without repeats. The caller's supports are left alone.
    ``parse(insert(x)) == x`` for every text that :func:`~serving.answer.rebuilding.rebuild` makes.
    """
    return lay_out(text, supports, lambda chunks: " " + "".join(f"[{chunk + 1}]" for chunk in chunks))


def lay_out(text: str, supports: Sequence[Support], run: Callable[[Sequence[int]], str]) -> str:
    """Writes what ``run`` makes of the chunks (ascending, once each) that are cited at each place, in text order.

    Pieces are laid end to end rather than spliced from the highest offset down: the same text, in linear time.
    """
    data = text.encode()
    spans: dict[Span, set[int]] = {}
    for support in supports:
        spans.setdefault(support.span, set()).update(support.chunks)
    runs: dict[int, set[int]] = {}
    for span, chunks in spans.items():
        _check_range(data, span)
        # The closing run of a sentence is short: only its end is looked at, so that nested spans stay linear.
        tail = data[max(span.start, span.end - _LONGEST_CLOSING) : span.end].decode(errors="ignore")
        closing = len(tail[terminator_start(tail) :].encode())
        runs.setdefault(span.end - closing, set()).update(chunks)
    pieces: list[str] = []
    done = 0
    for at in sorted(runs):
        pieces.append(_decode(data, done, at))
        if runs[at]:
            pieces.append(run(sorted(runs[at])))
        done = at
    pieces.append(_decode(data, done, len(data)))
    return "".join(pieces)


def _check_range(data: bytes, span: Span) -> None:
    start, end = span
    if not 0 <= start <= end <= len(data):
        raise SpanOutOfRangeError(f"span [{start}, {end}) leaves a text of {len(data)} bytes")
    for offset in span:
        if offset < len(data) and data[offset] & 0xC0 == 0x80:
            raise SpanSplitsCharacterError(f"span [{start}, {end}) splits a character")


def chunk_of(passage: Passage) -> GroundingChunk:
    """``web`` for a passage with a URL, ``retrievedContext`` for one without."""
    if passage.url:
        return GroundingChunk(web=WebChunk(uri=passage.url, title=passage.title))
    uri = passage.source_path or passage.source
    return GroundingChunk(retrievedContext=RetrievedContext(uri=uri, title=passage.title, text=passage.text))


def metadata(text: str, supports: Iterable[Support], passages: Sequence[Passage]) -> Grounding:
    """Grounding metadata for an answer text. Raises as :func:`validate` does when a span cannot be read."""
    data = text.encode()
    return Grounding(
        groundingChunks=tuple(chunk_of(passage) for passage in passages),
        groundingSupports=tuple(
            GroundingSupport(
                segment=Segment(
                    startIndex=support.span.start, endIndex=support.span.end, text=_decode(data, *support.span)
                ),
                groundingChunkIndices=support.chunks,
                confidenceScores=tuple(round(score, 4) for score in support.confidences),
            )
            for support in supports
        ),
    )


def validate(text: str, grounding: Grounding) -> None:
    """Checks that every support holds. Must pass before anything leaves.

    Raises :class:`SpanOutOfRangeError`, :class:`SpanSplitsCharacterError`, :class:`SegmentTextMismatchError`,
    :class:`UnknownChunkError` or :class:`EmptySupportError`, for the first support at fault.
    """
    data = text.encode()
    chunks = len(grounding.groundingChunks)
    for support in grounding.groundingSupports:
        segment = support.segment
        if _decode(data, segment.startIndex, segment.endIndex) != segment.text:
            raise SegmentTextMismatchError(
                f"the text of segment [{segment.startIndex}, {segment.endIndex}) differs from its bytes"
            )
        if segment.startIndex == segment.endIndex:
            raise SpanOutOfRangeError(f"span [{segment.startIndex}, {segment.endIndex}) is empty")
        if not support.groundingChunkIndices:
            raise EmptySupportError(f"segment [{segment.startIndex}, {segment.endIndex}) names no chunk")
        if len(support.confidenceScores) != len(support.groundingChunkIndices):
            raise EmptySupportError(
                f"segment [{segment.startIndex}, {segment.endIndex}) has {len(support.confidenceScores)} confidences "
                f"for {len(support.groundingChunkIndices)} chunks"
            )
        for chunk in support.groundingChunkIndices:
            if not 0 <= chunk < chunks:
                raise UnknownChunkError(f"chunk {chunk} does not exist: there are {chunks}")
