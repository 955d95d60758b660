"""Faults that other answer engines and libraries were reported for, each as an input and what is right.

The id of each case is the report. Beside them, real model output with markers, when the data is at hand.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from serving.answer import grounding
from serving.answer.citations import parse
from serving.answer.errors import UnknownChunkError
from serving.answer.rebuilding import rebuild
from serving.answer.sentences import split
from serving.answer.streaming import Parser
from serving.answer.types import Passage, Span, Support

Cited = list[tuple[str, tuple[int, ...]]]


def cited(reply: str, passages: int) -> Cited:
    return [(s.claim.text, s.claim.chunks) for s in parse(reply, passages).statements]


def case(report: str, *values: object) -> object:
    return pytest.param(*values, id=f"https://github.com/{report}")


@pytest.mark.parametrize(
    ("reply", "passages", "claims"),
    [
        # Code, mathematics, tables
        case("HKUDS/DeepTutor/pull/469", "```\ndp[i][0] = 1\n```\n", 3, [("dp[i][0] = 1", ())]),
        case("onyx-dot-app/onyx/pull/911", "Use `a[1]` and ``b[2]``.", 3, [("Use `a[1]` and ``b[2]``.", ())]),
        case("brave/brave-browser/issues/55248", "~~~\nx[1]\n~~~\nSo [1].", 3, [("x[1]", ()), ("So.", (0,))]),
        case(
            "ls1intum/Artemis/pull/13710",
            "Let $x[1]$ be. $$x$$[1] is.",
            3,
            [("Let $x[1]$ be.", ()), ("$$x$$ is.", (0,))],
        ),
        case(
            "ls1intum/edutelligence/pull/912",
            "array[0] and matrix[0][1] in prose.",
            3,
            [("array[0] and matrix[0][1] in prose.", ())],
        ),
        case(
            "brave/brave-browser/issues/53414",
            "| City | People |\n|---|---|\n| Paris | 2 [1] |\n| Rome [2] | 3 |\n",
            3,
            [("Paris | 2", (0,)), ("Rome | 3", (1,))],
        ),
        case("nuclia/frontend/pull/1930", "| A | B |\n|---|---|\n| x [1] | y [2] |", 3, [("x | y", (0, 1))]),
        # Range and grammar
        case("onyx-dot-app/onyx/issues/1543", "It is [5,7].", 4, [("It is.", ())]),
        case("IgorGanapolsky/ThumbGate/pull/3098", "It is [999].", 4, [("It is.", ())]),
        case("deepset-ai/haystack/pull/12061", "It is [0].", 4, [("It is.", ())]),
        case("deepset-ai/haystack/issues/11002", "It is [6-10].", 12, [("It is.", (5, 6, 7, 8, 9))]),
        case("deepset-ai/haystack/pull/11623", "It is [1-999999999]. So [3-1].", 4, [("It is.", ()), ("So.", ())]),
        case("toufiqfarhan0/deptrace/issues/40", "It is [E1, E2].", 4, [("It is [E1, E2].", ())]),
        case("thunderbird/thunderbolt/pull/364", "It is [51].", 50, [("It is.", ())]),
        case("princeton-nlp/ALCE/issues/26", "Statement. [1] Next.", 4, [("Statement.", (0,)), ("Next.", ())]),
        case("open-webui/open-webui/issues/10979", "First [1]. Last [4].", 4, [("First.", (0,)), ("Last.", (3,))]),
        case("Future-House/paper-qa/pull/990", "It is [smith2020].", 4, [("It is [smith2020].", ())]),
        case("Future-House/paper-qa/pull/929", "It is (Smith, 2020).", 4, [("It is (Smith, 2020).", ())]),
        # Citation spans that models leak
        case("lidge-jun/opencodex/issues/3150", "It is \ue200cite\ue202turn0search0\ue201.", 4, [("It is.", ())]),
        case("mmeyerlein/meclaw/issues/569", "It is.\ue200cite\ue202turn0", 4, [("It is.", ())]),
        case(
            "Stack-Cairn/LiveAgent/issues/625", "A \ue200cite\ue202t0\ue201\ue200cite\ue202t1\ue201.", 4, [("A.", ())]
        ),
        # Repeated sentences
        case(
            "CherryHQ/cherry-studio/pull/13646",
            "**It** is [1]. **It** is [2].",
            4,
            [("**It** is.", (0,)), ("**It** is.", (1,))],
        ),
    ],
)
def test_what_a_reply_claims_and_cites(reply: str, passages: int, claims: Cited) -> None:
    assert cited(reply, passages) == claims


@pytest.mark.parametrize(
    ("reply", "passages", "fabricated"),
    [
        case("onyx-dot-app/onyx/issues/1543", "It is [5,7].", 4, ("5", "7")),
        case("IgorGanapolsky/ThumbGate/pull/3098", "It is [999].", 4, ("999",)),
        case("deepset-ai/haystack/pull/12061", "It is [0].", 4, ("0",)),
        case("deepset-ai/haystack/pull/11623", "So [3-1].", 4, ("3-1",)),
        case("thunderbird/thunderbolt/pull/364", "It is [51].", 50, ("51",)),
        case("ls1intum/edutelligence/pull/912", "array[0] and matrix[0][1].", 3, ()),
        case("lidge-jun/opencodex/pull/3195", "It is \ue200cite\ue202turn0search9\ue201.", 4, ()),
    ],
)
def test_what_counts_as_made_up(reply: str, passages: int, fabricated: tuple[str, ...]) -> None:
    assert parse(reply, passages).fabricated == fabricated


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        case("nltk/nltk/issues/2376", "Nets, e.g. gill nets, i.e. walls, as Lee et al. say. They sink.", 2),
        case("nltk/nltk/issues/3370", "It is her Ph.D.'s title. It is long.", 2),
        case("nltk/nltk/issues/2154", "It is no. 5 of them. It is red.", 2),
        case("nltk/nltk/issues/2892", "It was built in 2013. Then it fell.", 2),
        case("nltk/nltk/issues/1210", "The leftmost x. If x is one, stop.", 2),
        case("nltk/nltk/issues/60", "J. K. Rowling met Mr. Smith. He left.", 2),
        case("opencues/opencues/pull/177", "彼は来た。彼女は？行った！", 3),
        case("devswha/patina/pull/459", "「やめろ。」と言った。彼は来た。", 2),
        case("joshuaswarren/remnic/pull/2404", "円周率は３．１４です。次。", 2),
        case("THU-MAIC/OpenMAIC/pull/952", "Pi is 3.14 in v1.2 of it. At 10.30 it ends.", 2),
        case("nipunsadvilkar/pySBD/issues/83", " Odd…  text?!\n\n\u3000。 ", None),
        case("nipunsadvilkar/pySBD/issues/49", "It is. It is. It is.", 3),
    ],
)
def test_sentences(text: str, pieces: int | None) -> None:
    assert "".join(split(text)) == text
    if pieces is not None:
        assert len(split(text)) == pieces


@pytest.mark.parametrize(
    "text",
    [
        case("google-gemini/gemini-cli/issues/29039", "日本🇯🇵é e\u0301. 終わり。"),
        case("google-gemini/gemini-cli/issues/5955", "👩‍👩‍👧 ist da. Ünï."),
        case("google-gemini/gemini-cli/pull/5956", "אב גד. Hello."),
        case("google-gemini/gemini-cli/pull/6008", "a𝒳b. 𝒴."),
    ],
)
def test_offsets_select_the_claim_in_every_unit(text: str) -> None:
    statements = parse(text, 0).statements
    assert len(statements) == 2
    units = grounding.spans_in_all_units(text, [s.claim.span for s in statements])
    for statement, spans in zip(statements, units, strict=True):
        assert text.encode()[slice(*spans.utf8)].decode() == statement.claim.text
        assert text[slice(*spans.code_point)] == statement.claim.text
        wide = text.encode("utf-16-le")
        assert wide[spans.utf16[0] * 2 : spans.utf16[1] * 2].decode("utf-16-le") == statement.claim.text


@pytest.mark.parametrize(
    "pieces",
    [
        case("onyx-dot-app/onyx/pull/1760", ["It is [1", "][", "2]. Then it goes on and on."]),
        case("ogx-ai/ogx/pull/6599", ["It is \ue200", "cite\ue202turn0", "search0\ue201 [1][2", "]. Then it goes on."]),
        case("mozilla-ai/any-llm/issues/1242", ["It is [", "1", "]", "[", "2", "]", ".", " ", "Then it goes on."]),
        case(
            "daugaard47/ChatGPT_Conversations_To_Markdown/issues/8",
            ["It is [1, 2]", ". Then it ends\ue200ci", "te\ue202."],
        ),
    ],
)
def test_a_marker_in_pieces_is_never_shown(pieces: list[str]) -> None:
    parser = Parser(3)
    found = [statement for piece in pieces for statement in parser.feed(piece)]
    found += parser.finish()
    assert (found[0].claim.text, found[0].claim.chunks) == ("It is.", (0, 1))
    assert not any(character in statement.claim.text for statement in found for character in "[]\ue200\ue202")


@pytest.mark.parametrize(
    "chunk", [case("deepset-ai/haystack/pull/12061", -1), case("thunderbird/thunderbolt/pull/364", 50)]
)
def test_a_chunk_that_is_none_is_never_grounded(chunk: int) -> None:
    passages = [Passage(id=str(number), text="") for number in range(50)]
    metadata = grounding.metadata("It is.", [Support(Span(0, 6), (chunk,), (0.9,))], passages)
    with pytest.raises(UnknownChunkError):
        grounding.validate("It is.", metadata)


DATA = Path(os.environ.get("ANSWER_EVAL_DATA") or Path(__file__).parents[4] / "shared" / "data")
ODDITIES = DATA / "format" / "citation_oddities.jsonl.gz"


def oddities() -> Iterator[tuple[str, int]]:
    with gzip.open(ODDITIES, "rt", encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            yield row["text"], int(row["sources"])


@pytest.mark.skipif(not ODDITIES.exists(), reason=f"no data at {ODDITIES}")
def test_what_models_wrote_parses_streams_and_rebuilds() -> None:
    replies = list(oddities())
    assert replies
    for text, passages in replies:
        whole = parse(text, passages)
        parser = Parser(passages)
        found = [s for at in range(0, len(text), 5) for s in parser.feed(text[at : at + 5])]
        assert (*found, *parser.finish()) == whole.statements
        assert parser.reply() == whole
        data = whole.text.encode()
        for statement in whole.statements:
            assert data[statement.claim.span.start : statement.claim.span.end].decode() == statement.claim.text
        survivors = [s for s in whole.statements if s.claim.chunks]
        rebuilt = rebuild(survivors, passages)
        supports = [Support(p.span, survivors[p.index].claim.chunks, ()) for p in rebuilt.placed]
        assert parse(grounding.insert(rebuilt.text, supports), passages).text == rebuilt.text
