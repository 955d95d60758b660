"""Checking a text of somebody else's: spans into it as it is, citations that prove, reasons that say why not."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serving.answer.checking import Checked, check_text
from serving.answer.direct import CheckedText, ceiling, pairs_ceiling
from serving.answer.errors import UnavailableError
from serving.answer.reference import OverlapVerifier
from serving.answer.seams import Pair
from serving.answer.types import Deadline, Passage, Phases, Reason, Verdict

from .fakes import FakeVerifier

FACTS = [
    Passage("0", "The tower was finished in 1889. It is 330 metres tall."),
    Passage("1", "Gustave Eiffel's company designed the tower."),
]


def checked(text: str, facts: list[Passage] = FACTS, *, floor: float = 0.5, verifier: object = None) -> Checked:
    judge = verifier or OverlapVerifier(0.85)
    deadline = Deadline.after(5.0, time.monotonic)
    return asyncio.run(check_text(text, facts, verifier=judge, floor=floor, deadline=deadline))  # type: ignore[arg-type]


def test_each_sentence_is_judged_against_all_facts() -> None:
    text = (
        "Très bien. The tower was finished in 1889. The tower is 320 metres tall.\n"
        "- Is it tall?\n- Eiffel's company designed the tower [2]."
    )
    found = checked(text)
    assert [(claim.reason, [citation.chunk for citation in claim.citations]) for claim in found.claims] == [
        (Reason.NOT_ENTAILED, []),
        (Reason.ENTAILED, [0]),
        (Reason.NUMBER_MISMATCH, []),
        (Reason.NOT_A_CLAIM, []),
        (Reason.ENTAILED, [1]),
    ]
    for claim in found.claims:
        assert text.encode()[claim.span.start : claim.span.end].decode() == claim.text
    assert found.claims[4].text == "Eiffel's company designed the tower [2]."
    assert found.claims[2].words
    assert [claim.required for claim in found.claims] == [True, True, True, False, True]
    whole = CheckedText(found.claims, found.pairs, 1, truncated=False, phases=Phases(), model="overlap")
    assert whole.support == pytest.approx(2 / 4)


def test_a_claim_that_leans_is_read_with_what_it_leans_on() -> None:
    verifier = FakeVerifier()
    checked("The tower is tall. It was finished in 1889.", FACTS[:1], verifier=verifier)
    assert [pair.claim for pair in verifier.pairs] == [
        "The tower is tall.",
        "The tower is tall. It was finished in 1889.",
    ]


def test_below_the_floor_nothing_is_cited() -> None:
    [claim] = checked("The tower was finished in 1889.", floor=0.95, verifier=FakeVerifier()).claims
    assert (claim.reason, claim.score, claim.citations) == (Reason.BELOW_FLOOR, 0.9, ())


def test_without_facts_nothing_is_proven_and_no_model_is_asked() -> None:
    verifier = FakeVerifier()
    [claim] = checked("The tower was finished in 1889.", [], verifier=verifier).claims
    assert (claim.reason, claim.score) == (Reason.UNCITED, 0.0)
    assert verifier.pairs == []


def test_a_verifier_that_is_down_is_an_incident() -> None:
    with pytest.raises(UnavailableError):
        checked("The tower was finished in 1889.", verifier=FakeVerifier(error=UnavailableError("down")))


@given(st.text(alphabet=st.sampled_from("ab .!?\n\r-*#[1]é日。\u2028😀"), max_size=80))
def test_any_text_has_spans_that_hold(text: str) -> None:
    found = checked(text)
    data, last = text.encode(), 0
    for claim in found.claims:
        assert claim.span.start >= last
        assert data[claim.span.start : claim.span.end].decode() == claim.text != ""
        last = claim.span.end


@given(st.lists(st.text(max_size=40), max_size=5), st.lists(st.text(max_size=40), max_size=5))
def test_a_ceiling_counts_every_pair(documents: list[str], claims: list[str]) -> None:
    assert pairs_ceiling(documents, claims) == sum(ceiling([d]) + ceiling([c]) for d in documents for c in claims)


def test_phases_add_up() -> None:
    assert Phases(1, 2, 3, 6, 10, 12) + Phases(1, 1, 1, 3, 5, 5) == Phases(2, 3, 4, 9, 15, 17)


class FakeInference:
    """A verifier that tells contradiction apart: the scores that stand for a premise and the end of a claim."""

    def __init__(self, said: dict[tuple[str, str], tuple[float, float | None]]) -> None:
        self._said = said

    async def verify(self, pairs: Sequence[Pair], *, deadline: Deadline) -> list[Verdict]:
        return [self._verdict(pair) for pair in pairs]

    def _verdict(self, pair: Pair) -> Verdict:
        found = (
            scores
            for (premise, end), scores in self._said.items()
            if premise in pair.premise and pair.claim.endswith(end)
        )
        score, against = next(found, (0.0, 0.0))
        return Verdict(score, Reason.ENTAILED if score >= 0.5 else Reason.NOT_ENTAILED, contradiction=against)


def test_the_fact_that_contradicts_most_is_told() -> None:
    said: dict[tuple[str, str], tuple[float, float | None]] = {
        ("finished", "was painted brown."): (0.1, 0.7),
        ("company", "was painted brown."): (0.2, 0.3),
        ("finished", "was painted green."): (0.9, 0.05),
        ("company", "was painted green."): (0.1, 0.4),
    }
    text = "The tower was painted brown. The tower was painted green. Is it tall?"
    found = checked(text, verifier=FakeInference(said)).claims
    assert [(claim.reason, claim.contradiction) for claim in found] == [
        (Reason.NOT_ENTAILED, 0.7),
        (Reason.ENTAILED, 0.4),
        (Reason.NOT_A_CLAIM, None),
    ]
    assert all(claim.contradiction is None for claim in checked(text).claims)


def test_a_part_of_a_claim_that_is_contradicted_is_told() -> None:
    said: dict[tuple[str, str], tuple[float, float | None]] = {
        ("finished", "was painted brown."): (0.3, 0.8),
        ("finished", "was closed by night."): (0.1, 0.1),
    }
    [claim] = checked(
        "The tower was painted brown, and the tower was closed by night.", FACTS[:1], verifier=FakeInference(said)
    ).claims
    assert (claim.reason, claim.score, claim.contradiction) == (Reason.NOT_ENTAILED, 0.1, 0.8)
