"""An event loop whose time is virtual: waits cost nothing, and every run is the same."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop whose clock jumps to the next timer whenever there is nothing else to do."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        selector: Any = self._selector  # type: ignore[attr-defined]
        select = selector.select

        def jump(timeout: float | None = None) -> Any:
            if timeout is not None and timeout > 0:
                self.now += timeout
            return select(0 if timeout is not None else None)

        selector.select = jump

    def time(self) -> float:
        return self.now


def run(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(asyncio.wait_for(main(), timeout=1e6))
