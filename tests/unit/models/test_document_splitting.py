import itertools
import re

from hypothesis import given
from hypothesis import strategies as st

from models.splitting import split

WORD = re.compile(r"\S+")


def offsets(text: str) -> list[tuple[int, int]]:
    return [match.span() for match in WORD.finditer(text)]


def test_a_text_that_fits_is_whole() -> None:
    assert split(" one two ", offsets(" one two "), 2) == [" one two "]


def test_pieces_end_with_sentences() -> None:
    text = "One two three four. Five six seven eight. Nine ten eleven twelve."
    assert [piece.strip() for piece in split(text, offsets(text), 6)] == [
        "One two three four.",
        "Five six seven eight.",
        "Nine ten eleven twelve.",
    ]


def test_without_sentences_pieces_end_between_words() -> None:
    text = " ".join(f"word{i}" for i in range(100))
    pieces = split(text, offsets(text), 8)
    assert {word for piece in pieces for word in piece.split()} == set(text.split())


def test_neighbouring_sentences_meet_in_a_piece() -> None:
    text = " ".join(f"Is {i}." for i in range(100))
    pieces = [piece.split() for piece in split(text, offsets(text), 40)]
    for earlier, later in itertools.pairwise(pieces):
        assert later[1] in earlier


@given(
    st.lists(st.sampled_from([" ", ". ", "! ", "\n", "。", " 。", ".", "?) ", "  "]), max_size=150), st.integers(1, 30)
)
def test_pieces_fit_and_cover(separators: list[str], room: int) -> None:
    text = "".join(f"w{number}{separator}" for number, separator in enumerate(separators))
    pieces = split(text, offsets(text), room)
    assert all(piece in text and len(offsets(piece)) <= room for piece in pieces)
    for number in range(len(separators)):
        assert any(re.search(rf"w{number}(?!\d)", piece) for piece in pieces)
    assert len(pieces) <= 2 * len(separators) + 1
