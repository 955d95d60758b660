"""A replica's parts are what its user_config says, without an error that would cost it its life."""

from __future__ import annotations

import asyncio
import re

import pytest

from models.errors import ModelUnusableError
from serving.deployments.replacing import PREVIOUS, Part, Replaceable

A, B, BAD = "weights:citation@aaaaaaaaaaaa", "weights:citation@bbbbbbbbbbbb", "weights:citation@cccccccccccc"


class FakePart:
    """Takes what it is given once it is let to; refuses ``BAD``."""

    def __init__(self) -> None:
        self.taken: list[str | None] = []
        self.may = asyncio.Event()
        self.may.set()

    async def take(self, reference: str | None) -> str:
        await self.may.wait()
        if reference == BAD:
            raise ModelUnusableError("It was not trained on this model.")
        if reference == "broken":
            raise RuntimeError("secret path")
        self.taken.append(reference)
        return f"made of {reference}"


def replaceable(fake: FakePart, default: str | None = None) -> Replaceable:
    return Replaceable({"adapter": Part(default, f"made of {default}", default)}, {"adapter": fake.take})


async def settled(parts: Replaceable) -> Part:
    async with asyncio.timeout(5):
        while not parts.parts["adapter"].settled:  # noqa: ASYNC110 (nothing tells)
            await asyncio.sleep(0.001)
    return parts.parts["adapter"]


async def test_a_starting_replica_takes_what_it_is_told_before_it_serves() -> None:
    fake = FakePart()
    parts = replaceable(fake)
    await parts.reconfigure({"adapter": A})
    assert fake.taken == [A]
    assert parts.parts["adapter"] == Part(A, f"made of {A}", A)


async def test_a_starting_replica_that_cannot_does_not_start() -> None:
    with pytest.raises(ModelUnusableError):
        await replaceable(FakePart()).reconfigure({"adapter": BAD})


async def test_a_serving_replica_is_configured_at_once_and_replaced_in_the_background() -> None:
    fake = FakePart()
    parts = replaceable(fake)
    await parts.reconfigure({})
    fake.may.clear()
    await parts.reconfigure({"adapter": A})
    under_way = parts.parts["adapter"]
    assert (under_way.reference, under_way.wanted, under_way.settled) == (None, A, False)
    fake.may.set()
    assert await settled(parts) == Part(A, f"made of {A}", A)


async def test_what_is_left_out_is_as_the_settings_say_and_null_is_none() -> None:
    fake = FakePart()
    parts = replaceable(fake, default="shipped:citation")
    await parts.reconfigure({"adapter": A})
    await parts.reconfigure({"adapter": None})
    assert (await settled(parts)).reference is None
    await parts.reconfigure({PREVIOUS: {"adapter": None}})
    assert (await settled(parts)).reference == "shipped:citation"
    assert fake.taken == [A, None, "shipped:citation"]


@pytest.mark.parametrize(("reference", "said"), [(BAD, "not trained on this"), ("broken", r"failed \(RuntimeError\)")])
async def test_what_is_refused_is_reported_and_the_old_stays(reference: str, said: str) -> None:
    parts = replaceable(FakePart())
    await parts.reconfigure({"adapter": A})
    await parts.reconfigure({"adapter": reference})
    part = await settled(parts)
    assert part.problem is not None
    assert re.search(said, part.problem)
    assert "secret" not in part.problem
    assert (part.reference, part.version, part.wanted) == (A, f"made of {A}", reference)
    await parts.reconfigure({"adapter": A})
    assert await settled(parts) == Part(A, f"made of {A}", A)


async def test_the_last_word_counts_when_it_changes_meanwhile() -> None:
    fake = FakePart()
    parts = replaceable(fake)
    await parts.reconfigure({})
    fake.may.clear()
    for reference in (A, BAD, B):
        await parts.reconfigure({"adapter": reference})
        await asyncio.sleep(0)
    fake.may.set()
    assert await settled(parts) == Part(B, f"made of {B}", B)
    assert fake.taken == [A, B]
