"""What one tenant may hold of a kind's budget, so that a flood of one cannot starve another."""

from __future__ import annotations

from collections import OrderedDict

from serving.answer.lane import Budget, Kind, Lane, Load
from serving.answer.types import Clock

_IDLE = Load(0, 0, 0)


class TenantLanes:
    """A lane of ``budget`` for each tenant, by key.

    Of idle ones the last ``kept`` are remembered, with the rate at which they drain. Keys are the callers': any number
    of them may come, and none costs anything once its calls are over.
    """

    def __init__(self, kind: Kind, budget: Budget, clock: Clock, *, kept: int = 1024) -> None:
        self._kind = kind
        self._budget = budget
        self._clock = clock
        self._kept = kept
        self._lanes: OrderedDict[str, Lane] = OrderedDict()

    def __len__(self) -> int:
        return len(self._lanes)

    def lane(self, tenant: str) -> Lane:
        lane = self._lanes.get(tenant)
        if lane is None:
            lane = self._lanes[tenant] = Lane(self._kind, self._budget, self._clock, whose="tenant's ")
            self._forget()
        self._lanes.move_to_end(tenant)
        return lane

    def load(self, tenant: str) -> Load:
        lane = self._lanes.get(tenant)
        return _IDLE if lane is None else lane.load()

    def _forget(self) -> None:
        """Drops the longest unused lanes that hold nothing."""
        excess = len(self._lanes) - self._kept
        if excess > 0:
            idle = [tenant for tenant, lane in list(self._lanes.items())[:-1] if lane.load() == _IDLE]
            for tenant in idle[:excess]:
                del self._lanes[tenant]
