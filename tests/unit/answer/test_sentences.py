"""Sentence boundaries, and that no text is lost at them."""

from __future__ import annotations

import gzip
import json
import os
from itertools import accumulate, islice
from pathlib import Path

import pytest
import sentencex
from hypothesis import given
from hypothesis import strategies as st

from serving.answer.sentences import is_terminated, split, terminator_start


@pytest.mark.parametrize("corpus", ["wiki2", "freshwiki"])
def test_cuts_are_nearly_those_of_a_well_kept_segmenter(corpus: str) -> None:
    path = data_folder() / "corpus" / f"{corpus}.jsonl.gz"
    if not path.is_file():
        pytest.skip("needs the shared data kit; set ANSWER_EVAL_DATA to its folder")
    both = ours_alone = theirs_alone = 0
    with gzip.open(path, "rt", encoding="utf-8") as rows:
        for row in islice(rows, 800):
            text = " ".join(json.loads(row)["text"].split())
            ours = set(accumulate(map(len, split(text))))
            theirs = set(accumulate(map(len, sentencex.segment("en", text))))
            both += len(ours & theirs)
            ours_alone += len(ours - theirs)
            theirs_alone += len(theirs - ours)
    assert both > 1000
    assert ours_alone < 0.02 * both, "where we alone cut, a sentence may be in two"
    assert theirs_alone < 0.06 * both


def data_folder() -> Path:
    beside = Path(__file__).parents[4] / "shared" / "data"
    return Path(os.environ.get("ANSWER_EVAL_DATA", beside))


@given(st.text(max_size=300))
def test_pieces_joined_give_the_text_back(text: str) -> None:
    assert "".join(split(text)) == text


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("Pi is 3.14. It is old.", 2),
        ("Use os.path.join here. Then go.", 2),
        ("A chain whose .__next__() method returns. Next.", 2),
        ("「やめろ。」と言った。", 1),
        ("３．１４です。", 1),
        ("Dr. Smith et al. wrote it. It sold.", 2),
        ("彼は来た。彼女も来た。", 2),
    ],
)
def test_boundaries(text: str, count: int) -> None:
    assert len([piece for piece in split(text) if piece.strip()]) == count


@pytest.mark.parametrize(
    ("sentence", "at"),
    [("It ends.", 7), ('He said "no."', 11), ("No end", 6), ("終わり。", 3), ('"quoted"', 8), ("...", 3), ("Why?!", 3)],
)
def test_where_the_closing_run_begins(sentence: str, at: int) -> None:
    assert terminator_start(sentence) == at


def test_terminated() -> None:
    assert is_terminated('He said "no."')
    assert is_terminated("終わり。")
    assert not is_terminated("os.path")
