import re
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.documents import LongDocument, Offsets, Pieces, lay_out
from models.errors import InputTooLongError

SENTENCES = "One two three. Four five six. Seven eight nine."


def words(text: str) -> list[tuple[int, int]]:
    return [match.span() for match in re.finditer(r"\S+", text)]


def syllables(text: str) -> list[tuple[int, int]]:
    """A tokenizer whose tokens depend on where a word begins: up to three characters, so a cut word may have more."""
    return [(at, min(at + 3, end)) for begin, end in words(text) for at in range(begin, end, 3)]


def ligatures(text: str) -> Sequence[tuple[int, int]]:
    """A tokenizer that takes one character for eighteen, as normalisation does with U+FDFA."""
    return [(at, at + 1) for at, letter in enumerate(text) for _ in range(18 if letter == "\ufdfa" else 1)]


@pytest.mark.parametrize("mode", ["chunk_max", "truncate", "error"])
def test_a_document_that_fits_is_read_whole_in_any_mode(mode: LongDocument) -> None:
    assert lay_out(SENTENCES, words, 9, mode) == Pieces((SENTENCES,))


@pytest.mark.parametrize("mode", ["chunk_max", "truncate", "error"])
@pytest.mark.parametrize("empty", ["", "   ", "\n\n"])
def test_a_document_without_a_token_has_no_piece(mode: LongDocument, empty: str) -> None:
    assert lay_out(empty, words, 9, mode) == Pieces(())


def test_pieces_end_with_sentences_and_nothing_is_lost() -> None:
    laid = lay_out(SENTENCES, words, 4, "chunk_max")
    assert [piece.strip() for piece in laid.texts] == ["One two three.", "Four five six.", "Seven eight nine."]
    assert not laid.truncated


def test_what_is_cut_is_said() -> None:
    assert lay_out(SENTENCES, words, 4, "truncate") == Pieces(("One two three.",), truncated=True)


def test_a_long_document_is_refused_where_that_is_asked_for() -> None:
    with pytest.raises(InputTooLongError, match="9 tokens is longer than the 4") as caught:
        lay_out(SENTENCES, words, 4, "error")
    assert caught.value.status == 422
    assert "chunk_max" in caught.value.message


def test_a_character_that_no_piece_has_room_for_is_said_to_be_missing() -> None:
    laid = lay_out("ab\ufdfacd" * 3, ligatures, 8, "chunk_max")
    assert laid.truncated
    assert {letter for piece in laid.texts for letter in piece} == set("abcd")


@given(st.text(alphabet="abc .\n!?。\ufdfa", max_size=200), st.integers(1, 20), st.sampled_from([syllables, ligatures]))
def test_pieces_of_anything_fit(document: str, room: int, offsets_of: Offsets) -> None:
    laid = lay_out(document, offsets_of, room, "chunk_max")
    assert all(0 < len(offsets_of(piece)) <= room for piece in laid.texts)
    assert all(piece in document for piece in laid.texts)
    assert bool(laid.texts) or laid.truncated or not offsets_of(document)
    assert laid == lay_out(document, offsets_of, room, "chunk_max")


@given(st.lists(st.sampled_from([" ", ". ", "! ", "\n", "。", "  "]), max_size=150), st.integers(2, 30))
def test_every_word_is_in_a_piece(separators: list[str], room: int) -> None:
    document = "".join(f"w{number}{separator}" for number, separator in enumerate(separators))
    laid = lay_out(document, syllables, room, "chunk_max")
    assert not laid.truncated
    for number in range(len(separators)):
        assert any(re.search(rf"w{number}(?!\d)", piece) for piece in laid.texts)


def test_a_million_characters_are_laid_out_in_linear_time() -> None:
    document = "The fox runs over the lazy dog. " * 31_250
    laid = lay_out(document, words, 400, "chunk_max")
    assert len(document) == 1_000_000
    assert 547 <= len(laid.texts) < 700
    assert not laid.truncated
