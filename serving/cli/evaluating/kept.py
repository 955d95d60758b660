"""Where a run's cases go as they finish."""

from __future__ import annotations

from typing import Generic, TypeVar

from serving.evaluation.records import Record

C = TypeVar("C", bound=Record)


class Kept(Generic[C]):
    """The cases of one run by id, for as long as the process lives. A case that broke is not finished."""

    def __init__(self) -> None:
        self._cases: dict[str, C] = {}

    @property
    def finished(self) -> dict[str, C]:
        return {name: case for name, case in self._cases.items() if case.error is None}

    @property
    def cases(self) -> dict[str, C]:
        return dict(self._cases)

    def append(self, case: C) -> None:
        self._cases[case.id] = case
