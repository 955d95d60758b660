"""Every string of a decode grammar, drawn from the grammar itself, parses to claims that all cite what exists."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from serving.answer.citations import parse
from serving.answer.composing import Draft
from serving.answer.grammar import DECLINE_LINE, marker_grammar
from serving.answer.statements import Reply, Statement
from serving.answer.streaming import Parser

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
