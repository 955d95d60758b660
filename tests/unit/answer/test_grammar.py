"""Every string of a decode grammar, drawn from the grammar itself, parses to claims that all cite what exists."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from serving.answer.citations import parse
from serving.answer.drafts import Draft
from serving.answer.grammar import DECLINE_LINE, marker_grammar, quote_grammar
from serving.answer.quotes import quotable
from serving.answer.statements import Reply, Statement
from serving.answer.streaming import Parser
from serving.answer.types import Passage

SIZES = st.tuples(st.integers(1, 12), st.integers(1, 5))
NOTABLE = "Ab3 .,;:!?\"'`$()<>|#*_-=\\/~&{}[]【】［］。！？．…\u00a0\u2028\u200b\x85\x1f\ue200\ue201é日ก"
"""Characters that mean something to the parser: a draw of any others would rarely hold two of them."""
ALPHABETS = (st.characters(codec="utf-8"), st.sampled_from(sorted({*NOTABLE, *DECLINE_LINE, *"0123456789"})))


def streamed(reply: str, passages: int, step: int) -> tuple[list[Statement], Reply]:
    parser = Parser(passages)
    given_out = [s for at in range(0, len(reply), step) for s in parser.feed(reply[at : at + step])]
    return [*given_out, *parser.finish()], parser.reply()


def assert_all_cite(reply: str, passages: int, sentences: int) -> None:
    statements, parsed = streamed(reply, passages, 5)
    assert parsed == parse(reply, passages)
    assert parsed.fabricated == ()
    assert 1 <= len(statements) <= sentences
    for statement in statements:
        assert statement.claim.chunks
        assert set(statement.claim.chunks) <= set(range(passages))
        assert not statement.claim.fabricated
        assert statement.claim.complete


@st.composite
def written_under_markers(draw: st.DrawFn) -> tuple[str, int, int]:
    passages, sentences = draw(SIZES)
    alphabet = draw(st.sampled_from(ALPHABETS))
    reply = draw(st.from_regex(marker_grammar(passages, sentences), fullmatch=True, alphabet=alphabet))
    return reply, passages, sentences


@settings(max_examples=400, deadline=None)
@given(written_under_markers())
def test_every_string_of_the_marker_grammar_declines_or_parses_to_claims_that_all_cite(
    written: tuple[str, int, int],
) -> None:
    reply, passages, sentences = written
    if Draft(text=reply).declines:
        assert reply == DECLINE_LINE
    else:
        assert_all_cite(reply, passages, sentences)


TEXTS = st.lists(
    st.text(alphabet=st.sampled_from(list("Aab .[]12\n\"'()-?!`*|$é")), max_size=160), min_size=1, max_size=4
)


@settings(max_examples=150, deadline=None)
@given(TEXTS, st.integers(1, 4), st.data())
def test_every_string_of_the_quote_grammar_declines_or_parses_to_sentences_of_the_passages(
    texts: list[str], sentences: int, data: st.DataObject
) -> None:
    said = "The tower {} was built there in 1889."
    passages = [Passage(id=str(at), text=f"{text}\n\n{said.format(at)}") for at, text in enumerate(texts)]
    quotes = quotable(passages, 6)
    reply = data.draw(st.from_regex(quote_grammar(quotes, sentences), fullmatch=True))
    if Draft(text=reply).declines:
        return
    assert_all_cite(reply, len(passages), sentences)
    written = [(s.claim.chunks[0] + 1, s.claim.text) for s in parse(reply, len(passages)).statements]
    assert written == [quote for quote in quotes if quote in written]
    assert written[0] == quotes[0]


def test_a_grammar_of_a_size_is_one_string_whatever_the_passages_say() -> None:
    assert marker_grammar(8, 2) == marker_grammar(8, 2)
    assert len({marker_grammar(k, n) for k in range(1, 13) for n in range(1, 6)}) == 60


@pytest.mark.parametrize(
    "reply",
    [
        "A\u2028# b. [1]",
        "A\x85b. [1]",
        "A。 b. [1]",
        "A! b. [1]",
        "A 【9】. [1]",
        "```a. [1]",
        "A._ b. [1]",
        "A \ue200b. [1]",
    ],
)
def test_what_would_leave_a_sentence_uncited_cannot_be_written(reply: str) -> None:
    assert not re.fullmatch(marker_grammar(3, 2), reply)
