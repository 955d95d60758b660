"""Rolling weights out: which part of which deployment a job's weights are for, and when all replicas have them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from serving.answer.errors import UnavailableError
from serving.deployments.replacing import PREVIOUS, Part, Report


@dataclass(frozen=True, slots=True)
class Place:
    """Where a job's weights are used: a deployment and the key of its ``user_config``.

    ``shipped`` is the job that those of the product come from: one file may hold the heads of several.
    """

    deployment: str
    key: str
    shipped: str


PLACES = {
    "citation": Place("Synthesizer", "adapter", shipped="citation"),
    "classifier": Place("Router", "classifier", shipped="classifier"),
    "reranker": Place("Reranker", "model", shipped="encoder"),
    "verifier": Place("Verifier", "model", shipped="encoder"),
}
"""By job."""


class RefusedError(UnavailableError):
    """The replicas did not take the weights: what they had goes on serving."""

    code = "weights_refused"


class Administered(Protocol):
    """A running application, as :class:`serving.deployments.administering.Service` is one."""

    def user_config(self, deployment: str) -> dict[str, Any]: ...

    def configure(self, deployment: str, user_config: Mapping[str, Any]) -> None: ...

    def reports(self, deployment: str, timeout_s: float) -> dict[str, Report]: ...


@dataclass(frozen=True, slots=True)
class Rolled:
    """The versions that the replicas' answers carried before, and carry now."""

    before: tuple[str, ...]
    after: tuple[str, ...]


class Rollout:
    """Weights of one job, in one running service. ``say`` is told of progress."""

    def __init__(
        self,
        service: Administered,
        place: Place,
        *,
        say: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._service = service
        self._place = place
        self._say = say
        self._clock = clock
        self._sleep = sleep

    def previous(self) -> str | None:
        """The reference that was in use before the one that is. Raises :class:`RefusedError` when nothing was."""
        before: dict[str, str | None] = self._service.user_config(self._place.deployment).get(PREVIOUS, {})
        if self._place.key not in before:
            raise RefusedError("Nothing was rolled out before: name a hash that `answer weights list` shows.")
        return before[self._place.key]

    def use(self, reference: str | None, *, timeout_s: float) -> Rolled:
        """Has every replica take what ``reference`` names, and returns when all have.

        Raises :class:`RefusedError` when one cannot, and :class:`~serving.answer.errors.UnavailableError` when they
        take longer than ``timeout_s``; what was in use before is then put back.
        """
        deployment, key = self._place.deployment, self._place.key
        before = self._parts(timeout_s)
        if all(part.reference == reference and part.settled for part in before):
            return Rolled(_versions(before), _versions(before))
        old = self._service.user_config(deployment)
        earlier = {**old.get(PREVIOUS, {}), key: before[0].reference}
        self._service.configure(deployment, {**old, key: reference, PREVIOUS: earlier})
        try:
            after = self._wait(reference, timeout_s)
        except BaseException:  # also when somebody loses patience with it
            self._service.configure(deployment, old)
            raise
        return Rolled(_versions(before), _versions(after))

    def _wait(self, reference: str | None, timeout_s: float) -> list[Part]:
        deadline = self._clock() + timeout_s
        while (left := deadline - self._clock()) > 0:
            parts = self._parts(left)
            heard = [part for part in parts if part.wanted == reference]
            if problem := next((part.problem for part in heard if part.problem), None):
                raise RefusedError(f"{problem.removesuffix('.')}; what served before goes on serving.")
            done = [part for part in heard if part.reference == reference and part.settled]
            if len(done) == len(parts):
                return parts
            self._say(f"{len(done)} of {len(parts)} replicas of {self._place.deployment} have the new weights")
            self._sleep(0.5)
        raise UnavailableError(
            f"The replicas had not taken the weights after {timeout_s:.0f} s; the old ones are put back."
        )

    def _parts(self, timeout_s: float) -> list[Part]:
        reports = self._service.reports(self._place.deployment, timeout_s)
        return [report.parts[self._place.key] for report in reports.values()]


def _versions(parts: list[Part]) -> tuple[str, ...]:
    return tuple(sorted({part.version for part in parts}))
