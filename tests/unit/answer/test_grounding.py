"""Grounding: byte offsets that hold, markers that parse back, a typed error for each fault."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serving.answer.citations import parse
from serving.answer.errors import (
    EmptySupportError,
    GroundingError,
    SegmentTextMismatchError,
    SpanOutOfRangeError,
    SpanSplitsCharacterError,
    UnknownChunkError,
)
from serving.answer.grounding import insert, metadata, spans_in_all_units, validate
from serving.answer.types import Passage, Span, Support
from serving.answer.wire import Grounding, GroundingChunk, GroundingSupport, Segment

PASSAGES = [
    Passage(id="a", text="A text.", title="A", url="https://a.example/"),
    Passage(id="b", text="B text.", title="B", source_path="b.md"),
    Passage(id="c", text="C text.", title="C"),
]


def support(start: int, end: int, *chunks: int) -> Support:
    return Support(Span(start, end), chunks, tuple(0.9 for _ in chunks))


def test_units_of_japanese_flags_and_combining_marks() -> None:
    text = "日本🇯🇵é x"
    (spans,) = spans_in_all_units(text, [Span(6, 6 + 8 + 2)])
    assert spans.utf8 == (6, 16)
    assert text.encode()[6:16].decode() == "🇯🇵é"
    assert text[slice(*spans.code_point)] == "🇯🇵é"
    assert text.encode("utf-16-le")[spans.utf16[0] * 2 : spans.utf16[1] * 2].decode("utf-16-le") == "🇯🇵é"


@given(st.lists(st.text(min_size=1, max_size=12), min_size=1, max_size=8))
def test_every_unit_selects_the_same_text(pieces: list[str]) -> None:
    pieces = [piece.encode("utf-8", "replace").decode() for piece in pieces]
    text = "".join(pieces)
    spans, at = [], 0
    for piece in pieces:
        spans.append(Span(at, at + len(piece.encode())))
        at = spans[-1].end
    for piece, units in zip(pieces, spans_in_all_units(text, spans), strict=True):
        assert text[slice(*units.code_point)] == piece
        wide = text.encode("utf-16-le")
        assert wide[units.utf16[0] * 2 : units.utf16[1] * 2].decode("utf-16-le") == piece


def test_markers_stand_before_the_terminator_and_closing_quotes() -> None:
    text = 'It ends. He said "no." 終わり。 No stop'
    supports = [support(0, 8, 0), support(9, 22, 1, 0), support(23, 35, 2), support(36, 43, 0)]
    assert insert(text, supports) == 'It ends [1]. He said "no [1][2]." 終わり [3]。 No stop [1]'


def test_supports_that_end_together_make_one_run_without_repeats_and_are_left_alone() -> None:
    supports = [support(0, 8, 2, 0), support(3, 8, 1, 0)]
    before = copy.deepcopy(supports)
    assert insert("It ends.", supports) == "It ends [1][2][3]."
    assert supports == before


SENTENCE = st.sampled_from(
    ["It ends.", 'He said "no."', "Pi is 3.14.", "終わりだ。", "Ünïcode 🇯🇵 here!", "Os.path ends."]
)


@given(st.lists(st.tuples(SENTENCE, st.sets(st.integers(0, 2), min_size=1)), min_size=1, max_size=8))
def test_what_is_inserted_parses_back(sentences: list[tuple[str, set[int]]]) -> None:
    text, supports, at = "", [], 0
    for sentence, chunks in sentences:
        at = len(text.encode())
        text += sentence + " "
        supports.append(support(at, at + len(sentence.encode()), *sorted(chunks)))
    text = text.rstrip()
    parsed = parse(insert(text, supports), 3)
    assert parsed.text == text
    assert [(s.claim.span, s.claim.chunks) for s in parsed.statements] == [(s.span, s.chunks) for s in supports]


def test_metadata_is_gemini_shaped_and_valid() -> None:
    text = "Ü is so. B too."
    grounding = metadata(text, [support(0, 9, 0), support(10, 16, 1, 2)], PASSAGES)
    validate(text, grounding)
    dumped = grounding.model_dump(exclude_none=True)
    assert dumped["groundingChunks"][0] == {"web": {"uri": "https://a.example/", "title": "A"}}
    assert dumped["groundingChunks"][1] == {"retrievedContext": {"uri": "b.md", "title": "B", "text": "B text."}}
    assert dumped["groundingSupports"][0]["segment"] == {"startIndex": 0, "endIndex": 9, "text": "Ü is so."}


def ungrounded(start: int, end: int, text: str, chunks: tuple[int, ...] = (0,), scores: int | None = None) -> Grounding:
    confidences = tuple(0.9 for _ in range(len(chunks) if scores is None else scores))
    segment = Segment(startIndex=start, endIndex=end, text=text)
    return Grounding(
        groundingChunks=(GroundingChunk(),),
        groundingSupports=(
            GroundingSupport(segment=segment, groundingChunkIndices=chunks, confidenceScores=confidences),
        ),
    )


@pytest.mark.parametrize(
    ("grounding", "error"),
    [
        (ungrounded(0, 99, "é it is."), SpanOutOfRangeError),
        (ungrounded(-1, 3, "é"), SpanOutOfRangeError),
        (ungrounded(5, 3, ""), SpanOutOfRangeError),
        (ungrounded(3, 3, ""), SpanOutOfRangeError),
        (ungrounded(1, 9, "it is."), SpanSplitsCharacterError),
        (ungrounded(0, 1, "é"), SpanSplitsCharacterError),
        (ungrounded(0, 9, "é it was"), SegmentTextMismatchError),
        (ungrounded(0, 9, "é it is.", (1,)), UnknownChunkError),
        (ungrounded(0, 9, "é it is.", (-1,)), UnknownChunkError),
        (ungrounded(0, 9, "é it is.", ()), EmptySupportError),
        (ungrounded(0, 9, "é it is.", (0,), scores=2), EmptySupportError),
    ],
)
def test_each_fault_has_its_error(grounding: Grounding, error: type[GroundingError]) -> None:
    with pytest.raises(error):
        validate("é it is.", grounding)


@given(st.text(max_size=40), st.integers(-2, 60), st.integers(-2, 60), st.integers(-1, 2))
def test_validate_passes_exactly_what_holds(text: str, start: int, end: int, chunk: int) -> None:
    text = text.encode("utf-8", "replace").decode()
    data = text.encode()
    try:
        covered = data[start:end].decode() if 0 <= start < end <= len(data) else None
    except UnicodeDecodeError:
        covered = None
    grounding = ungrounded(start, end, covered or "", (chunk,))
    if covered is not None and chunk == 0:
        validate(text, grounding)
    else:
        with pytest.raises(GroundingError):
            validate(text, grounding)
