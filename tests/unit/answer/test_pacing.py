"""Pacing: what is asked for when time is short."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serving.answer.pacing import LEAST_CONTEXT, LEAST_REPLY, SLACK, Pace, Plan, leaving
from serving.answer.types import Deadline
from tests.unit.answer.fakes import FakeClock

FULL = {"prompt_tokens": 200, "context_tokens": 2400, "reply_tokens": 256}


def paced(prompt_token_s: float = 0.001, reply_token_s: float = 0.02, verifying_s: float = 0.1) -> Pace:
    pace = Pace()
    pace.observe(
        prompt_tokens=1000,
        first_s=1000 * prompt_token_s,
        reply_tokens=101,
        writing_s=100 * reply_token_s,
        verifying_s=verifying_s,
    )
    return pace


def test_nothing_is_known_at_first_and_all_is_asked_for() -> None:
    assert Pace().plan(0.001, **FULL) == Plan(2400, 256)


def test_with_time_enough_all_is_asked_for() -> None:
    assert paced().plan(60.0, **FULL) == Plan(2400, 256)


def test_with_half_the_time_about_half_is_asked_for() -> None:
    whole = 2600 * 0.001 + 256 * 0.02 + 0.1
    plan = paced().plan(whole / 2 / SLACK, **FULL)
    assert plan.reduced
    assert 0.3 * 2400 < plan.context_tokens < 0.6 * 2400
    assert 0.3 * 256 < plan.reply_tokens < 0.6 * 256


def test_with_no_time_the_least_is_asked_for() -> None:
    assert paced().plan(0.0, **FULL) == Plan(LEAST_CONTEXT, LEAST_REPLY, reduced=True)


def test_less_than_the_least_by_policy_stays_as_it_is() -> None:
    assert paced().plan(0.0, prompt_tokens=200, context_tokens=100, reply_tokens=20) == Plan(100, 20)


def test_the_pace_follows_what_it_sees() -> None:
    pace = paced()
    before = pace.least_s(prompt_tokens=200)
    for _ in range(20):
        pace.observe(prompt_tokens=1000, first_s=4.0, reply_tokens=101, writing_s=8.0, verifying_s=0.4)
    assert pace.least_s(prompt_tokens=200) == pytest.approx(4 * before, rel=0.05)


def test_nonsense_measures_change_nothing() -> None:
    pace = paced()
    before = pace.least_s(prompt_tokens=200)
    pace.observe(prompt_tokens=0, first_s=1.0, reply_tokens=1, writing_s=1.0, verifying_s=0.1)
    pace.observe(prompt_tokens=10, first_s=0.0, reply_tokens=0, writing_s=0.0, verifying_s=0.1)
    assert pace.least_s(prompt_tokens=200) == pytest.approx(before)


@given(
    st.floats(0, 1e3),
    st.floats(0, 1e3),
    st.integers(0, 4000),
    st.integers(0, 1000),
    st.tuples(st.floats(0, 0.1), st.floats(0, 1), st.floats(0, 10)),
)
def test_a_plan_is_within_policy_grows_with_time_and_fits(
    one: float, two: float, context: int, reply: int, rates: tuple[float, float, float]
) -> None:
    pace = paced(*rates)
    short, long = sorted((one, two))
    less, more = (
        pace.plan(left, prompt_tokens=200, context_tokens=context, reply_tokens=reply) for left in (short, long)
    )
    for plan in (less, more):
        assert min(LEAST_CONTEXT, context) <= plan.context_tokens <= context
        assert min(LEAST_REPLY, reply) <= plan.reply_tokens <= reply
    assert less.context_tokens <= more.context_tokens
    assert less.reply_tokens <= more.reply_tokens
    if long >= pace.least_s(prompt_tokens=200):
        takes = rates[0] * (200 + more.context_tokens) + rates[1] * more.reply_tokens + rates[2]
        assert takes <= long * SLACK * (1 + 1e-9) + rates[0] + rates[1] + 1e-9


def test_a_stage_leaves_time_for_what_comes_after() -> None:
    clock = FakeClock()
    deadline = Deadline.after(10.0, clock)
    assert leaving(deadline, 4.0).remaining() == pytest.approx(6.0)
    assert leaving(deadline, 40.0).passed
