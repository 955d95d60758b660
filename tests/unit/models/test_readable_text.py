from hypothesis import given
from hypothesis import strategies as st

from models.text import readable


def test_half_surrogates_nuls_and_pairs() -> None:
    assert readable("a\ud800b") == "a\ufffdb"
    assert readable("\ud83d\ude00") == "😀"
    assert readable("a\0b") == "a b"


@given(st.text())
def test_text_that_encodes_stays(text: str) -> None:
    assert readable(text) == text.replace("\0", " ")


@given(st.text(alphabet=st.characters(min_codepoint=0xD7F0, max_codepoint=0xE010)))
def test_everything_encodes_afterwards(text: str) -> None:
    readable(text).encode()
