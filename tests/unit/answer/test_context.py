"""Freshness, consolidation, budget and order, as properties of whole functions."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from serving.answer.context import budget, consolidate, freshen, order, time_sensitive
from serving.answer.types import Passage

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
SCORES = st.floats(0, 1, allow_subnormal=False)
DATES = st.none() | st.datetimes() | st.datetimes(timezones=st.sampled_from([UTC, timezone(timedelta(hours=-7))]))
PASSAGES = st.lists(
    st.builds(
        Passage,
        id=st.uuids().map(str),
        text=st.text("ab \n", max_size=6),
        source=st.sampled_from(["", "a", "b"]),
        score=SCORES,
        published_at=DATES,
    ),
    max_size=12,
)


class Characters:
    """One token a character."""

    def count(self, text: str) -> int:
        return len(text)


def passage(name: str, score: float = 0.5, published_at: datetime | None = None, **more: str) -> Passage:
    return Passage(id=name, text=more.pop("text", name), score=score, published_at=published_at, **more)  # type: ignore[arg-type]


def test_a_half_life_halves_the_weighted_part() -> None:
    old = passage("old", 0.8, NOW - timedelta(days=30))
    (fresh,) = freshen([old], now=NOW, half_life_days=30, weight=0.5)
    assert fresh.score == pytest.approx(0.5 * 0.8 + 0.5 * 0.8 * 0.5)
    (twice,) = freshen([passage("o", 0.8, NOW - timedelta(days=60))], now=NOW, half_life_days=30, weight=1)
    assert twice.score == pytest.approx(0.2)


def test_dates_to_come_are_now_and_dates_without_a_zone_are_utc() -> None:
    coming = passage("coming", 0.7, NOW + timedelta(days=9))
    naive = passage("naive", 0.7, datetime(2026, 2, 1, 12))  # noqa: DTZ001
    aware = passage("aware", 0.7, datetime(2026, 2, 1, 12, tzinfo=UTC))
    fresh = {p.id: p.score for p in freshen([coming, naive, aware], now=NOW, half_life_days=10, weight=1)}
    assert fresh["coming"] == 0.7
    assert fresh["naive"] == fresh["aware"] < 0.7
    same_now = freshen([aware], now=NOW.replace(tzinfo=None), half_life_days=10, weight=1)
    assert same_now[0].score == fresh["aware"]


@given(PASSAGES, st.floats(0.01, 10_000), st.floats(0, 1))
def test_freshen_sorts_and_touches_no_undated_passage(passages: list[Passage], half_life: float, weight: float) -> None:
    before = list(passages)
    fresh = freshen(passages, now=NOW, half_life_days=half_life, weight=weight)
    assert passages == before
    assert Counter(p.id for p in fresh) == Counter(p.id for p in passages)
    scores = [p.score for p in fresh]
    assert scores == sorted(scores, reverse=True)
    was = {p.id: p for p in passages}
    for p in fresh:
        if p.published_at is None:
            assert p == was[p.id]
        assert 0 <= p.score <= was[p.id].score
        assert p.scored(0) == was[p.id].scored(0)
    rank = {p.id: at for at, p in enumerate(passages)}
    for first, second in pairwise(fresh):
        assert first.score > second.score or rank[first.id] < rank[second.id]


@given(PASSAGES, st.floats(0.01, 10_000), st.floats(0, 1), st.floats(0, 1))
def test_more_weight_never_raises_a_score(passages: list[Passage], half_life: float, one: float, two: float) -> None:
    low, high = sorted((one, two))
    less = {p.id: p.score for p in freshen(passages, now=NOW, half_life_days=half_life, weight=low)}
    more = {p.id: p.score for p in freshen(passages, now=NOW, half_life_days=half_life, weight=high)}
    assert all(more[name] <= less[name] for name in less)


@given(PASSAGES)
def test_no_weight_changes_no_score(passages: list[Passage]) -> None:
    fresh = freshen(passages, now=NOW, half_life_days=30, weight=0)
    assert fresh == sorted(passages, key=lambda p: -p.score)


@given(SCORES, DATES.filter(bool), DATES.filter(bool))
def test_of_two_dates_the_later_scores_no_less(score: float, one: datetime, two: datetime) -> None:
    def utc(moment: datetime) -> datetime:
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)

    earlier, later = sorted((one, two), key=utc)
    fresh = freshen(
        [passage("earlier", score, earlier), passage("later", score, later)], now=NOW, half_life_days=100, weight=0.6
    )
    by_id = {p.id: p.score for p in fresh}
    assert by_id["earlier"] <= by_id["later"]


@pytest.mark.parametrize("wrong", [{"half_life_days": 0}, {"weight": 1.1}, {"weight": float("nan")}])
def test_freshen_refuses_settings_that_make_no_sense(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        freshen([], now=NOW, **({"half_life_days": 1.0, "weight": 0.5} | wrong))


@pytest.mark.parametrize(
    "question",
    [
        *("latest python release", "who is the current president", "What's the weather today?", "is it open now?"),
        *("newest iphone", "recent papers on attention", "best films this year", "elections in 2026", "budget 2025?"),
        *("What happened last night?", "ＬＡＴＥＳＴ news", "world cup 2027", "current version of numpy"),
    ],
)
def test_questions_that_age(question: str) -> None:
    assert time_sensitive(question, now=NOW)


@pytest.mark.parametrize(
    "question",
    [
        *(
            "who wrote don quixote",
            "what is electric current",
            "the battle of 1066",
            "why does alternating current alternate",
        ),
        *("elections in 2020", "flights of 20265", "what do you know about knowledge", "currency of japan", ""),
        *("current in a circuit", "numpy 1.2026", "what does datetime.now do"),
    ],
)
def test_questions_that_do_not_age(question: str) -> None:
    assert not time_sensitive(question, now=NOW)


@given(st.text(), st.datetimes())
def test_any_text_ages_or_not(question: str, now: datetime) -> None:
    assert time_sensitive(question, now=now) in {True, False}


@given(PASSAGES, st.integers(1, 4))
def test_consolidate_caps_sources_and_collapses_copies(passages: list[Passage], per_source: int) -> None:
    kept = consolidate(passages, per_source=per_source)
    places = [next(at for at, p in enumerate(passages) if p is k) for k in kept]
    assert places == sorted(set(places))
    voices = Counter(p.source for p in kept if p.source)
    assert all(count <= per_source for count in voices.values())
    texts = [" ".join(p.text.split()) for p in kept]
    assert len(texts) == len(set(texts))
    assert consolidate(kept, per_source=per_source) == kept
    for dropped in (p for p in passages if not any(p is k for k in kept)):
        copied = " ".join(dropped.text.split()) in texts
        assert copied or (dropped.source and voices[dropped.source] == per_source)


def test_passages_without_a_source_are_each_a_voice() -> None:
    passages = [passage(str(n)) for n in range(5)]
    assert consolidate(passages, per_source=1) == passages


def test_a_copy_takes_no_place_of_its_source() -> None:
    passages = [passage("1", text="a b", source="s"), passage("2", text=" a\nb ", source="t"), passage("3", source="t")]
    assert [p.id for p in consolidate(passages, per_source=1)] == ["1", "3"]
    with pytest.raises(ValueError, match="per_source"):
        consolidate(passages, per_source=0)


@given(PASSAGES, st.integers(0, 60), st.integers(0, 8))
def test_budget_is_never_passed(passages: list[Passage], tokens: int, limit: int) -> None:
    def render(number: int, p: Passage) -> str:
        return f"[{number}] {p.text}\n"

    kept = budget(passages, counter=Characters(), render=render, tokens=tokens, limit=limit)
    assert len(kept) <= limit
    assert sum(len(render(number, p)) for number, p in enumerate(kept, start=1)) <= tokens
    places = [next(at for at, p in enumerate(passages) if p is k) for k in kept]
    assert places == sorted(set(places))
    if len(kept) < limit:
        # Whatever was left out would not have fitted when its turn came, so it does not fit at the end either.
        left = tokens - sum(len(render(number, p)) for number, p in enumerate(kept, start=1))
        for dropped in (p for p in passages if not any(p is k for k in kept)):
            assert len(render(len(kept) + 1, dropped)) > left


def test_budget_skips_what_does_not_fit_and_goes_on() -> None:
    passages = [passage("1", text="aaaa"), passage("2", text="b" * 50), passage("3", text="cc"), passage("4", text="d")]
    numbers: list[tuple[int, str]] = []

    def render(number: int, p: Passage) -> str:
        numbers.append((number, p.id))
        return p.text

    kept = budget(passages, counter=Characters(), render=render, tokens=7, limit=2)
    assert [p.id for p in kept] == ["1", "3"]
    assert numbers == [(1, "1"), (2, "2"), (2, "3")]


@pytest.mark.parametrize(
    ("count", "ranks"),
    [(0, []), (1, [1]), (2, [1, 2]), (3, [1, 3, 2]), (4, [1, 3, 4, 2]), (5, [1, 3, 5, 4, 2]), (6, [1, 3, 5, 6, 4, 2])],
)
def test_order_of_a_few(count: int, ranks: list[int]) -> None:
    assert [at + 1 for at in order(count)] == ranks


@given(st.integers(0, 200))
def test_order_is_a_valley(count: int) -> None:
    places = order(count)
    assert sorted(places) == list(range(count))
    # Insertion at ``len // 2 + len % 2``, rank by rank, gives the same.
    inserted: list[int] = []
    for rank in range(count):
        inserted.insert(len(inserted) // 2 + len(inserted) % 2, rank)
    assert places == inserted
    assume(count >= 2)
    assert places[0] == 0
    assert places[-1] == 1
    weakest = places.index(count - 1)
    assert places[: weakest + 1] == sorted(places[: weakest + 1])
    assert places[weakest:] == sorted(places[weakest:], reverse=True)
