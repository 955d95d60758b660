import pytest
from hypothesis import given
from hypothesis import strategies as st

from serving.retrieval.analysis import query_words, words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("itertools.chain", ["itertools.chain", "itertools", "chain"]),
        ("__init__", ["__init__", "init"]),
        ("snake_case_names", ["snake_case_names", "snake", "case", "names"]),
        ("CamelCase", ["CamelCase", "Camel", "Case"]),
        ("HTTPServer", ["HTTPServer", "HTTP", "Server"]),
        ("scikit-learn", ["scikit-learn", "scikit", "learn"]),
        ("Python 3.11.", ["Python", "3.11"]),
        ("The end. Next", ["The", "end", "Next"]),
        ("日本語", ["日", "本", "語"]),
        ("\u200b ( ^ ~ [ 🙂", []),
    ],
)
def test_words(text: str, expected: list[str]) -> None:
    assert list(words(text)) == expected


def test_stop_words_are_dropped_while_others_remain() -> None:
    assert query_words("What does the bakery sell?") == ["bakery", "sell"]
    assert query_words("To be or not to be") == ["To", "be", "or", "not", "to", "be"]


@given(st.text(st.characters(codec=None)))
def test_any_text_gives_words_that_encode_and_hold_no_space(text: str) -> None:
    for word in words(text):
        assert word.encode()
        assert word.split() == [word]
