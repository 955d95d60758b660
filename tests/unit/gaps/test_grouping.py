"""Grouping over each database: what is close and not told apart becomes one, and nothing is lost on the way."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from serving.answer.types import DeclineReason
from serving.gaps.database import Database
from serving.gaps.grouping import Grouper
from serving.gaps.records import GapQuery, State
from serving.gaps.settings import GapsSettings
from serving.gaps.store import GapStore
from tests.unit.gaps.fakes import asking, at, declined

EVERY = GapQuery(state=None, limit=200)


def direction(degrees: float) -> np.ndarray:
    return np.array([np.cos(np.radians(degrees)), np.sin(np.radians(degrees))], np.float32)


DIRECTIONS = {
    "What does chain do?": 0,
    "What is chain for?": 10,
    "What does chain not do?": 1,
    "What does zip do?": 60,
    "What is zip for?": 66,
}


def group(store: GapStore, settings: GapsSettings, embedder: str = "minilm") -> int:
    grouper = Grouper(store, settings, embedder=embedder)
    waiting = grouper.waiting(100)
    return grouper.group({gap_id: direction(DIRECTIONS[question]) for gap_id, question in waiting.items()})


def counts(store: GapStore) -> dict[str | None, int]:
    return {gap.question: gap.count for gap in store.page(EVERY).gaps}


def test_paraphrases_become_one_and_keep_their_askings(store: GapStore, settings: GapsSettings) -> None:
    nothing = declined(reason=DeclineReason.NOTHING_RETRIEVED)
    store.write([asking(question, minutes=minute) for minute, question in enumerate(DIRECTIONS)])
    store.write([asking("What is chain for?", minutes=9, answer=nothing)])
    assert group(store, settings) == 2
    assert counts(store) == {"What does chain do?": 3, "What does chain not do?": 1, "What does zip do?": 2}
    gap = next(gap for gap in store.page(EVERY).gaps if gap.question == "What does chain do?")
    assert (gap.first_seen, gap.last_seen) == (at(0), at(9))
    assert gap.latest is not None
    assert gap.latest.reason is DeclineReason.NOTHING_RETRIEVED
    assert [found.id for found in store.page(GapQuery(reason=DeclineReason.NOTHING_RETRIEVED)).gaps] == [gap.id]
    assert [one.question for one in store.show(gap.id)[1]] == [
        "What is chain for?",
        "What is chain for?",
        "What does chain do?",
    ]


def test_a_wording_that_was_grouped_is_known_when_it_comes_again(store: GapStore, settings: GapsSettings) -> None:
    store.write([asking("What does chain do?"), asking("What is chain for?")])
    group(store, settings)
    store.write([asking("what is CHAIN for", minutes=5)])
    assert counts(store) == {"What does chain do?": 3}
    assert Grouper(store, settings, embedder="minilm").waiting(10) == {}


def test_the_threshold_is_the_settings(store: GapStore) -> None:
    store.write([asking("What does chain do?"), asking("What is chain for?")])
    assert group(store, GapsSettings(group_above=0.99)) == 0  # cos 10° is 0.985
    assert len(counts(store)) == 2


def test_tenants_are_kept_apart(store: GapStore, settings: GapsSettings) -> None:
    store.write([asking("What does chain do?"), asking("What is chain for?", tenant="acme")])
    assert group(store, settings) == 0


def test_a_person_closed_it_for_all_wordings_and_an_answer_for_its_own(store: GapStore, settings: GapsSettings) -> None:
    store.write([asking("What does chain do?"), asking("What does zip do?")])
    group(store, settings)
    ids = {gap.question: gap.id for gap in store.page(EVERY).gaps}
    store.resolve(ids["What does chain do?"], at=at(1), note="not our subject")
    store.resolve(ids["What does zip do?"], at=at(1), answered_request_id="r9")
    store.write([asking("What is chain for?"), asking("What is zip for?")])
    assert group(store, settings) == 1
    assert counts(store) == {"What does chain do?": 2, "What does zip do?": 1, "What is zip for?": 1}
    assert [gap.question for gap in store.page(GapQuery(state=State.OPEN)).gaps] == ["What is zip for?"]


def test_another_embedder_groups_anew(store: GapStore, settings: GapsSettings) -> None:
    store.write([asking("What does chain do?")])
    group(store, settings, "minilm")
    assert Grouper(store, settings, embedder="bge").waiting(10) != {}
    store.write([asking("What is chain for?")])
    assert group(store, settings, "bge") == 1


def test_two_that_group_at_once_make_one_group(url: str, tmp_path: Path, settings: GapsSettings) -> None:
    """Both have read the same waiting gaps before either wrote."""
    stores = [GapStore(Database(url, home=tmp_path), settings) for _ in range(2)]
    stores[0].write([asking("What does chain do?"), asking("What is chain for?")])
    groupers = [Grouper(store, settings, embedder="minilm") for store in stores]
    waiting = [grouper.waiting(10) for grouper in groupers]
    vectors = [{gap_id: direction(DIRECTIONS[text]) for gap_id, text in found.items()} for found in waiting]
    assert [grouper.group(found) for grouper, found in zip(groupers, vectors, strict=True)] == [1, 0]
    assert counts(stores[0]) == {"What does chain do?": 2}
    for store in stores:
        store.database.close()


@pytest.mark.parametrize("settings", [GapsSettings(max_askings=2)])
def test_a_group_keeps_its_latest_askings(store: GapStore, settings: GapsSettings) -> None:
    store.write([asking("What does chain do?", minutes=minute) for minute in range(3)])
    store.write([asking("What is chain for?", minutes=minute) for minute in range(3, 5)])
    group(store, settings)
    (gap,) = store.page(EVERY).gaps
    assert gap.count == 5
    assert [one.asked_at for one in store.show(gap.id)[1]] == [at(4), at(3)]
