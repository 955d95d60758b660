"""The model-backed synthesizer: vLLM on the event loop it is used on, its engine in one process beside it."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncGenerator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from models.chat import ChatEncoder
from models.errors import InputTooLongError
from models.fingerprint import fingerprint
from models.progress import Progress
from models.swapping import Swap
from models.vllm_options import VllmOptions, prepare_environment
from serving.answer.errors import UnavailableError
from serving.answer.seams import Generation
from serving.answer.types import Clock, Deadline, Delta, Message

if TYPE_CHECKING:
    from vllm.lora.request import LoRARequest

    from models.vllm_engine import VllmEngine

DEADLINE = "deadline"
"""The finish reason of a reply that the deadline cut off."""

DRAIN_S = 30.0
"""How long replies under way may take to end before weights are overwritten."""

_FINISHED = frozenset({"stop", "length"})


@dataclass(frozen=True, slots=True)
class Written:
    """What replies are written with: weights, the adapter that runs beside them, and the name that says both."""

    name: str
    model: Path
    adapter: LoRARequest | None


class VllmSynthesizer:
    """The seam :class:`~serving.answer.seams.Synthesizer`. Made by :meth:`start`, used on the loop it was made on."""

    def __init__(self, engine: VllmEngine, options: VllmOptions, *, clock: Clock) -> None:
        adapter = engine.adapter(*options.adapter) if options.adapter else None
        self._weights = Swap(Written(options.name or _name(options), options.model, adapter))
        self._engine = engine
        self._chat = ChatEncoder(engine.tokenizer)
        self._max_model_len = options.max_model_len
        self._clock = clock
        self._patience_s = options.patience_s
        self._progress = Progress(patience_s=options.patience_s, clock=clock)
        self._numbers = itertools.count()
        # A long prompt takes a while to tokenise, and the loop has tokens to pass on meanwhile.
        self._encoding = ThreadPoolExecutor(1, thread_name_prefix="chat")

    @classmethod
    async def start(cls, options: VllmOptions, *, clock: Clock = time.monotonic) -> VllmSynthesizer:
        """Starts the engine and its process: 15 to 60 s on a CPU, during which the loop stands still.

        Raises :class:`~models.errors.ModelUnusableError` when the model does not load.
        """
        prepare_environment(options)
        from models.vllm_engine import VllmEngine  # noqa: PLC0415 (it reads the environment just prepared)

        engine = VllmEngine(options)
        try:
            return cls(engine, options, clock=clock)
        except BaseException:
            engine.close()
            raise

    @property
    def name(self) -> str:
        """The weights that a reply is written with which begins now."""
        return self._weights.current.name

    async def load(self, model: Path, name: str) -> None:
        """Overwrites the weights with those in ``model``: replies under way end with the old, those that come wait.

        Raises :class:`~models.errors.ModelUnusableError` and :class:`~models.swapping.BusyError`; the old weights then
        go on serving.
        """
        old = self._weights.current

        async def change() -> None:
            try:
                await self._engine.reload(model)
            except BaseException:
                await self._restore(old.model)
                raise

        await self._weights.exchange(Written(name, model, old.adapter), change, patience_s=DRAIN_S)

    async def adapt(self, adapter: tuple[str, Path] | None, name: str) -> None:
        """Writes with ``adapter`` beside the weights, or with the bare weights; returns when no reply uses the old.

        Nothing waits. Raises :class:`~models.errors.ModelUnusableError`; the old adapter then goes on serving.
        """
        new = self._engine.adapter(*adapter) if adapter else None
        if new is not None:
            await self._engine.load_adapter(new)
        await self._weights.hand_over(Written(name, self._weights.current.model, new), self._forget)

    async def _forget(self, old: Written) -> None:
        if old.adapter is not None:
            await self._engine.forget_adapter(old.adapter)

    async def _restore(self, model: Path) -> None:
        """Puts the weights back. An engine that will not take them knows no weights that it could write with."""
        try:
            await self._engine.reload(model)
        except BaseException:
            self._engine.close()
            raise

    async def generate(self, request: Generation, *, deadline: Deadline) -> AsyncGenerator[Delta, None]:
        """The reply's deltas as they come. The last has a finish reason (``stop``, ``length`` or ``deadline``).

        All of it is written with the same weights, which each delta names.

        Raises :class:`~models.errors.InputTooLongError` when prompt and reply do not fit the window,
        :class:`~models.errors.GrammarError` when the grammar does not compile,
        :class:`~serving.answer.errors.UnavailableError` when the engine fails.
        """
        prompt = await asyncio.get_running_loop().run_in_executor(self._encoding, self._chat.encode, request.messages)
        if len(prompt) + request.max_tokens > self._max_model_len:
            raise InputTooLongError(
                f"A prompt of {len(prompt)} tokens and a reply of {request.max_tokens} do not fit the model's window "
                f"of {self._max_model_len}: give fewer passages or ask for a shorter reply."
            )
        request_id = f"{request.request_id}-{next(self._numbers)}"
        async with AsyncExitStack() as stack:
            try:
                async with asyncio.timeout(deadline.remaining()):
                    weights = await stack.enter_async_context(self._weights.use())
            except TimeoutError:
                yield Delta("", DEADLINE, len(prompt))
                return
            self._progress.began()
            stack.callback(self._progress.ended)
            outputs = self._engine.stream(prompt, request, request_id, weights.adapter)
            await stack.enter_async_context(aclosing(outputs))
            deltas = await stack.enter_async_context(aclosing(self._deltas(outputs, len(prompt), deadline)))
            async for delta in deltas:
                yield replace(delta, version=weights.name)

    async def health(self) -> None:
        """Raises :class:`~serving.answer.errors.UnavailableError` when the engine has died or nothing comes out."""
        if self._engine.dead:
            raise UnavailableError("The language model's engine has died.")
        if self._progress.stalled:
            raise UnavailableError(
                f"The language model has written nothing for {self._progress.silent_s():.0f} s with "
                f"{self._progress.in_flight} requests in flight."
            )

    async def warm_up(self) -> None:
        """Writes two constrained tokens, so that the first reply finds model, grammar compiler and adapter loaded."""
        request = Generation((Message("user", "Hello"),), "warm-up", max_tokens=2, grammar="[a-z]+")
        async for _ in self.generate(request, deadline=Deadline.after(self._patience_s, self._clock)):
            pass

    def close(self) -> None:
        """Ends the engine and its process; replies in flight fail. Takes a few seconds. Call it on the loop."""
        self._encoding.shutdown(wait=False, cancel_futures=True)
        self._engine.close()

    async def _deltas(
        self, outputs: AsyncGenerator[Any, None], prompt_tokens: int, deadline: Deadline
    ) -> AsyncGenerator[Delta, None]:
        written = 0
        while True:
            try:
                if deadline.passed:
                    raise TimeoutError
                async with asyncio.timeout(deadline.remaining()):
                    output = await anext(outputs)
            except TimeoutError:
                yield Delta("", DEADLINE, prompt_tokens, written)
                return
            self._progress.moved()
            reply = output.outputs[0]
            written += len(reply.token_ids)
            if output.finished:
                if reply.finish_reason not in _FINISHED:
                    raise UnavailableError("The language model's engine gave up this reply.")
                yield Delta(reply.text, reply.finish_reason, prompt_tokens, written)
                return
            if reply.text:  # half a character has no text yet
                yield Delta(reply.text)


def _name(options: VllmOptions) -> str:
    name = f"{options.model.name}@{fingerprint(options.model)}"
    if options.adapter is None:
        return name
    adapter, folder = options.adapter
    return f"{name}+{adapter}@{fingerprint(folder)}"
