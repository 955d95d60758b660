"""The product in this process: the deployments' own classes, made here, behind handles that call them directly.

What a deployment builds in a Serve replica, it builds here in the same way, so that a run measures what is served.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self, cast

from ray.serve.handle import DeploymentHandle

from serving.cli.console import Steps
from serving.settings import Settings

STAGES = {
    "qa": ("embedder", "reranker", "verifier", "synthesizer"),
    "grounding": ("verifier",),
    "rerank": ("embedder", "reranker"),
    "route": (),
}
"""The deployments that each kind of suite needs."""


class LocalProduct:
    """Some of the product's deployments, started here. ``handles`` go where Serve's handles go."""

    def __init__(self, settings: Settings, stages: tuple[str, ...], steps: Steps) -> None:
        self.settings = settings
        self._stages = stages
        self._steps = steps
        self._closing: list[Callable[[], Any]] = []
        self.handles: dict[str, DeploymentHandle] = {}

    async def __aenter__(self) -> Self:
        try:
            for stage in self._stages:
                self._steps.say(f"starting the {stage}")
                self.handles[stage] = await self._start(stage)
        except BaseException:
            await self._close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._close()

    async def names(self) -> dict[str, str]:
        """The models that run, by stage."""
        return {stage: await self.handles[stage].name.remote() for stage in self._stages}

    async def _start(self, stage: str) -> DeploymentHandle:
        from transformers.utils.logging import disable_progress_bar

        disable_progress_bar()  # type: ignore[no-untyped-call]  # the steps say what goes on
        made: Any = _deployment(stage).func_or_class
        # Serve awaits a replica's own end; here it must not be left to the garbage collector.
        silent: Any = type(made.__name__, (made,), {"__del__": lambda _: None})
        replica = silent.__new__(silent)
        others = (self.handles["embedder"],) if stage == "reranker" else ()
        begun = replica.__init__(self.settings, *others)
        if inspect.isawaitable(begun):
            await begun
        if hasattr(made, "__del__"):
            self._closing.append(lambda: made.__del__(replica))
        return cast("DeploymentHandle", LocalHandle(replica))

    async def _close(self) -> None:
        while self._closing:
            ended = self._closing.pop()()
            if inspect.isawaitable(ended):
                await ended


def _deployment(stage: str) -> Any:
    """Imported one by one: a run of the verifier loads no language model's engine."""
    if stage == "embedder":
        from serving.deployments.embedder import EmbedderDeployment

        return EmbedderDeployment
    if stage == "reranker":
        from serving.deployments.reranker import RerankerDeployment

        return RerankerDeployment
    if stage == "verifier":
        from serving.deployments.verifier import VerifierDeployment

        return VerifierDeployment
    from serving.deployments.synthesizer import SynthesizerDeployment

    return SynthesizerDeployment


class LocalHandle:
    """What a Serve handle is to its callers, over an object of this process: ``handle.method.remote(...)``."""

    def __init__(self, replica: object) -> None:
        self._replica = replica

    def options(self, **_: Any) -> LocalHandle:
        return self

    def __getattr__(self, name: str) -> _LocalMethod:
        return _LocalMethod(getattr(self._replica, name))


class _LocalMethod:
    def __init__(self, method: Callable[..., Any]) -> None:
        self._method = method

    def remote(self, *arguments: Any, **named: Any) -> Any:
        result = self._method(*arguments, **named)
        return _LocalStream(result) if inspect.isasyncgen(result) else result


class _LocalStream:
    """A stream that can be cancelled, as a Serve response can."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._closing: asyncio.Task[None] | None = None

    async def __anext__(self) -> Any:
        return await anext(self._stream)

    def cancel(self) -> None:
        self._closing = asyncio.get_running_loop().create_task(self._stream.aclose())


NO_HANDLES: Mapping[str, DeploymentHandle] = {"retriever": cast("DeploymentHandle", LocalHandle(object()))}
"""What stands for the index in a run that answers from each row's own passages."""
