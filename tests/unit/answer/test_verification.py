"""Checking claims: what may be shown, what is dropped, and for which reason."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serving.answer.citations import parse
from serving.answer.errors import UnavailableError
from serving.answer.reference import OverlapVerifier, RareWordRelevance, rarer_half
from serving.answer.seams import Pair
from serving.answer.types import Citation, Claim, Deadline, Judged, Passage, Reason, Span, Verdict
from serving.answer.verification import check, correct, decompose
from tests.unit.answer.fakes import FakeClock, FakeRelevance, FakeVerifier

PASSAGES = [
    Passage(id="a", title="Eiffel Tower", text="The tower was built in 1889. It is 330 metres tall."),
    Passage(id="b", title="Louvre", text="The museum is in Paris. It opened in 1793."),
    Passage(id="c", title="Seine", text="The river does not freeze."),
]
DEADLINE = Deadline.after(10, FakeClock())


async def judge(
    reply: str, verifier: FakeVerifier | OverlapVerifier, relevance: FakeRelevance | None = None
) -> list[Judged]:
    decomposed = decompose(parse(reply, len(PASSAGES)))
    checked = await check(
        [s.claim for s in decomposed.checkable],
        PASSAGES,
        question="?",
        verifier=verifier,
        relevance=relevance or FakeRelevance(),
        deadline=DEADLINE,
    )
    return list(checked.judged)


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("It has no source.", Reason.UNCITED),
        ("Shall I go on [1]?", Reason.NOT_A_CLAIM),
        ("# A heading [1]", Reason.NOT_A_CLAIM),
        ("| a | b [1] |", Reason.NOT_A_CLAIM),
        ("```\ncode\n```", Reason.NOT_A_CLAIM),
        ("It stands, you know [1].", None),
        ("It is [1].", Reason.NOT_A_CLAIM),
        ("It was built [7].", Reason.FABRICATED_CITATION),
    ],
)
def test_what_is_not_worth_checking(reply: str, reason: Reason | None) -> None:
    decomposed = decompose(parse(reply, 3))
    assert [why for _, why in decomposed.dropped] == ([reason] if reason else [])
    assert len(decomposed.checkable) == (0 if reason else 1)


def test_a_repeated_claim_is_dropped() -> None:
    decomposed = decompose(parse("The tower stands [1]. The tower stands [1].", 3))
    assert [why for _, why in decomposed.dropped] == [Reason.REPEATED]


async def test_any_cited_passage_that_entails_suffices_and_the_rest_are_pruned() -> None:
    (judged,) = await judge("The tower stands tall [1][2][3].", FakeVerifier({"tower": "museum"}))
    assert judged.proven
    assert [citation.chunk for citation in judged.citations] == [1]


async def test_evidence_split_over_passages_is_tried_on_the_cited_set() -> None:
    class FakeJointVerifier(FakeVerifier):
        def _verdict(self, pair: Pair):  # type: ignore[no-untyped-def]
            both = "tower" in pair.premise and "museum" in pair.premise
            return FakeVerifier()._verdict(pair) if both else FakeVerifier({})._verdict(pair)

    (judged,) = await judge("Tower and museum stand [1][2].", FakeJointVerifier())
    assert [citation.chunk for citation in judged.citations] == [0, 1]


async def test_a_claim_no_passage_entails_is_not_entailed() -> None:
    (judged,) = await judge("The tower is old [1].", FakeVerifier({}))
    assert judged.reason is Reason.NOT_ENTAILED
    assert judged.citations == ()


async def test_only_cited_passages_are_asked_about() -> None:
    verifier = FakeVerifier()
    await judge("The museum opened [2].", verifier)
    assert [pair.premise.splitlines()[0] for pair in verifier.pairs] == ["Louvre"]
    assert "It opened in 1793." in verifier.pairs[0].premise


async def test_guards_reject_before_the_verifier_is_asked() -> None:
    verifier = FakeVerifier()
    judged = await judge("The tower was built in 1899 [1]. The river freezes not, see sys.path [3].", verifier)
    assert [one.reason for one in judged] == [Reason.DATE_MISMATCH, Reason.NAME_MISMATCH]
    assert verifier.pairs == []


async def test_an_irrelevant_claim_is_dropped_unasked() -> None:
    verifier = FakeVerifier()
    (judged,) = await judge("The tower stands [1].", verifier, FakeRelevance(irrelevant="tower"))
    assert judged.reason is Reason.IRRELEVANT
    assert verifier.pairs == []


async def test_a_verifier_that_is_down_is_an_incident() -> None:
    with pytest.raises(UnavailableError):
        await judge("The tower stands [1].", FakeVerifier(error=UnavailableError("down")))


@given(st.lists(st.sampled_from(["tower", "museum"]), max_size=4), st.floats(0, 1))
async def test_correct_keeps_what_is_entailed_above_the_floor_and_is_verified_only_when_all_is(
    words: list[str], floor: float
) -> None:
    reply = " ".join(f"The {word} stands number {n} [1]." for n, word in enumerate(words))
    decomposed = decompose(parse(reply, 3))
    passages = [Passage(id="a", text=f"tower {list(range(9))}")]
    checked = await check(
        [s.claim for s in decomposed.checkable],
        passages,
        question="?",
        verifier=FakeVerifier({"tower": "tower"}),
        relevance=FakeRelevance(),
        deadline=DEADLINE,
    )
    corrected = correct(decomposed, checked.judged, floor=floor)
    expected = [word for word in words if word == "tower"] if floor <= 0.9 else []
    assert [s.claim.text.split()[1] for s, _ in corrected.kept] == expected
    assert corrected.verified == (bool(words) and len(expected) == len(words))
    assert sum(count for _, count in corrected.dropped) == len(words) - len(expected)


async def test_a_leaning_claim_is_verified_with_its_context_and_only_its_own_words_are_the_claim() -> None:
    verifier = FakeVerifier()
    first, second = await judge("The tower stands in Paris [1]. It is 330 metres tall [1].", verifier)
    assert (first.reason, second.claim.text) == (Reason.NAME_MISMATCH, "It is 330 metres tall.")  # Paris is not told
    assert second.claim.context == "The tower stands in Paris."
    assert second.reason is Reason.NAME_MISMATCH  # its context is judged with it


async def test_what_leans_on_a_dropped_claim_is_dropped_with_it() -> None:
    reply = parse(
        "The tower was built in 1889 [1]. It is 330 metres tall [1]. It is old [1]. The museum opened [2].", 3
    )
    decomposed = decompose(reply)
    assert [s.claim.context for s in decomposed.checkable] == [
        "",
        "The tower was built in 1889.",
        "The tower was built in 1889. It is 330 metres tall.",
        "",
    ]
    checked = await check(
        [s.claim for s in decomposed.checkable],
        PASSAGES,
        question="?",
        verifier=FakeVerifier(),
        relevance=FakeRelevance(irrelevant="built"),
        deadline=DEADLINE,
    )
    judged = [Judged(j.claim, Reason.ENTAILED, (Citation(0, 0.9),)) for j in checked.judged]
    judged[0] = Judged(judged[0].claim, Reason.NOT_ENTAILED)
    corrected = correct(decomposed, judged, floor=0.5)
    assert [s.claim.text for s, _ in corrected.kept] == ["The museum opened."]
    assert dict(corrected.dropped) == {Reason.NOT_ENTAILED: 1, Reason.LOST_CONTEXT: 2}


def test_a_claim_that_leans_on_an_uncited_sentence_is_lost() -> None:
    decomposed = decompose(parse("The tower is old. It is tall [1].", 3))
    judged = [Judged(s.claim, Reason.ENTAILED, (Citation(0, 0.9),)) for s in decomposed.checkable]
    corrected = correct(decomposed, judged, floor=0.5)
    assert corrected.kept == ()
    assert dict(corrected.dropped) == {Reason.LOST_CONTEXT: 1, Reason.UNCITED: 1}


async def test_a_half_true_claim_is_not_entailed() -> None:
    verifier = OverlapVerifier(0.6)  # by words alone, enough of the whole claim stands in the passage
    whole = "The tower was built in 1889 and is painted yellow."
    (verdict,) = await verifier.verify([Pair(PASSAGES[0].text, whole)], deadline=DEADLINE)
    assert verdict.reason is Reason.ENTAILED
    (judged,) = await judge("The tower was built in 1889 and is painted yellow [1].", OverlapVerifier(0.7))
    assert judged.reason is Reason.NOT_ENTAILED


async def test_two_facts_may_be_proven_by_two_passages() -> None:
    verifier = FakeVerifier({"built": "tower", "paint": "museum"})
    (judged,) = await judge("The house was built there and is paint free [1][2][3].", verifier)
    assert [citation.chunk for citation in judged.citations] == [0, 1]


async def test_a_verdict_says_what_each_passage_scored_and_which_words_decided() -> None:
    (judged,) = await judge("The museum opened in 1793 [1][2].", FakeVerifier())
    assert judged.proven
    assert [(chunk, verdict.reason, verdict.words) for chunk, verdict in judged.verdicts] == [
        (0, Reason.DATE_MISMATCH, ("1793", "1889")),
        (1, Reason.ENTAILED, ()),
    ]


class FakeSetVerifier(FakeVerifier):
    """Entails a claim when the premise holds all words of one of the sets it is told."""

    def __init__(self, *sufficient: frozenset[int]) -> None:
        super().__init__()
        self._sufficient = sufficient

    def _verdict(self, pair: Pair) -> Verdict:
        held = {number for number in range(6) if f"page{number}x" in pair.premise}
        entailed = any(needed <= held for needed in self._sufficient)
        return Verdict(0.9, Reason.ENTAILED) if entailed else Verdict(0.1, Reason.NOT_ENTAILED)


@given(
    st.lists(st.frozensets(st.integers(0, 5), min_size=1), max_size=4),
    st.frozensets(st.integers(0, 5), min_size=1),
)
async def test_the_smallest_sufficient_set_is_cited_and_never_more_than_three(
    sufficient: list[frozenset[int]], cited: frozenset[int]
) -> None:
    passages = [Passage(id=str(number), text=f"page{number}x") for number in range(6)]
    claim = Claim("The thing stands.", Span(0, 17), tuple(sorted(cited)))
    checked = await check(
        [claim],
        passages,
        question="?",
        verifier=FakeSetVerifier(*sufficient),
        relevance=FakeRelevance(),
        deadline=DEADLINE,
    )
    (judged,) = checked.judged
    proof = {citation.chunk for citation in judged.citations}
    usable = [needed for needed in sufficient if needed <= cited and len(needed) <= 3]
    assert proof <= cited
    assert len(proof) <= 3
    if len(cited) <= 5:  # of more, the joint case looks at five
        assert judged.proven == bool(usable)
    if judged.proven:
        assert any(needed <= proof for needed in sufficient)
        assert not any(needed < proof for needed in sufficient)


async def test_the_overlap_verifier_counts_content_words() -> None:
    verifier = OverlapVerifier(0.8)
    pairs = [
        Pair("Eiffel Tower\nThe tower was built in 1889.", "The towers were built in 1889."),
        Pair("The museum opened.", "The tower was built in 1889."),
        Pair("The museum opened.", "It is."),
    ]
    same, other, empty = await verifier.verify(pairs, deadline=DEADLINE)
    assert (same.reason, same.score) == (Reason.ENTAILED, 1.0)
    assert (other.reason, other.score) == (Reason.NOT_ENTAILED, 0.0)
    assert empty.reason is Reason.NOT_ENTAILED


@pytest.mark.parametrize("threshold", [0.0, -1.0, 1.5])
def test_a_threshold_that_cannot_work_is_refused(threshold: float) -> None:
    with pytest.raises(ValueError, match="threshold"):
        OverlapVerifier(threshold)


async def test_relevance_asks_for_one_of_the_rarer_words() -> None:
    claims = [
        s.claim for s in parse("The tower was built in 1889 [1]. It opened in 1793 [2]. It flows [3].", 3).statements
    ]
    relevance = RareWordRelevance()
    assert await relevance.relevant("When was the tower built?", claims, PASSAGES, deadline=DEADLINE) == [
        True,
        False,
        False,
    ]
    assert await relevance.relevant("Tell me of the Louvre", claims, PASSAGES, deadline=DEADLINE) == [
        False,
        True,
        False,
    ]
    assert await relevance.relevant("What is it?", claims, PASSAGES, deadline=DEADLINE) == [True, True, True]
    assert (
        await relevance.relevant("Who won the 1954 chess olympiad?", claims, PASSAGES, deadline=DEADLINE) == [False] * 3
    )


async def test_rarity_is_the_corpus_s_where_it_can_be_asked() -> None:
    asked: list[str] = []

    async def frequencies(words: Sequence[str], *, deadline: Deadline) -> list[int]:
        asked.extend(words)
        return [{"towers": 3, "package": 900}[word] for word in words]

    claims = [s.claim for s in parse("The tower stands [1]. It is a package [2].", 3).statements]
    relevance = RareWordRelevance(frequencies)
    assert await relevance.relevant("What is the towers package?", claims, PASSAGES, deadline=DEADLINE) == [True, False]
    assert asked == ["towers", "package"]


@given(st.lists(st.tuples(st.text("abc", min_size=1), st.integers(0, 9)), unique_by=lambda pair: pair[0]))
def test_the_rarer_half_is_held_by_no_more_than_the_rest(pairs: list[tuple[str, int]]) -> None:
    words, held = [word for word, _ in pairs], [count for _, count in pairs]
    rare = rarer_half(words, held)
    assert len(rare) == (len(words) + 1) // 2
    assert max((c for w, c in pairs if w in rare), default=0) <= min((c for w, c in pairs if w not in rare), default=9)


async def test_a_row_is_read_below_its_header_and_a_leaning_claim_after_its_neighbour() -> None:
    verifier = FakeVerifier()
    await judge("| Name | Height |\n|---|---|\n| Tower | 330 m [1] |\n", verifier)
    await judge("The tower was built in 1889 [1]. It is 330 metres tall [1].", verifier)
    assert [pair.claim for pair in verifier.pairs] == [
        "Name | Height\nTower | 330 m",
        "The tower was built in 1889.",
        "The tower was built in 1889. It is 330 metres tall.",
    ]
