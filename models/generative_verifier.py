"""The verifier that writes its verdict: Bespoke-MiniCheck-7B, or any chat model, on vLLM's engine."""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol

from models.bespoke import CHUNK, TOP, chance_of_yes, messages, settled
from models.chat import ChatEncoder
from models.documents import LongDocument, lay_out
from models.errors import InputTooLongError
from models.fingerprint import fingerprint
from models.plain_text import plain_reader
from models.progress import Progress
from models.text import readable
from models.vllm_options import VllmOptions, prepare_environment
from serving.answer.errors import DeadlineExceededError, UnavailableError
from serving.answer.seams import Pair
from serving.answer.types import Clock, Deadline, PairScore, Phases, Reason, Scored, Verdict

_DOCUMENT_SHARE = 8  # at least an eighth of the window is the document's


Sentences = Callable[[str], Sequence[str]]
"""Cuts a claim into its sentences."""


class FirstTokens(Protocol):
    """What is asked of an engine: see :class:`~models.vllm_engine.VllmEngine`."""

    tokenizer: Any

    @property
    def dead(self) -> bool: ...

    async def first_token(self, prompt: list[int], request_id: str, *, top: int) -> list[tuple[str, float]]: ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class _Asked:
    """The prompts of a pair, by sentence of the claim and chunk of the document."""

    prompts: tuple[tuple[list[int], ...], ...]
    truncated: bool


class GenerativeVerifier:
    """The seam :class:`~serving.answer.seams.Verifier`. Made by :meth:`start`, used on the loop it was made on.

    A claim is entailed when the chance of a yes is above ``threshold``. Pairs of one document are sent one after the
    other, so that they share the engine's cache of it. ``max_model_len`` counts tokens of prompt and verdict.
    """

    def __init__(
        self,
        engine: FirstTokens,
        *,
        name: str,
        sentences: Sentences,
        max_model_len: int,
        threshold: float = 0.5,
        long_document: LongDocument = "chunk_max",
        patience_s: float = 120.0,
        clock: Clock = time.monotonic,
    ) -> None:
        if not 0.0 < threshold < 1.0:
            raise ValueError(f"threshold is {threshold}, and must lie between 0 and 1: 0.5 is the usual one.")
        self.name = name
        self._engine = engine
        self._sentences = sentences
        self._chat = ChatEncoder(engine.tokenizer)
        self._words = plain_reader(engine.tokenizer)
        self._max_model_len = max_model_len
        self._threshold = threshold
        self._long_document = long_document
        self._clock = clock
        self._patience_s = patience_s
        self._progress = Progress(patience_s=patience_s, clock=clock)
        self._numbers = itertools.count()
        self._encoding = ThreadPoolExecutor(1, thread_name_prefix="verifier-reader")
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()

    @classmethod
    async def start(
        cls,
        options: VllmOptions,
        *,
        sentences: Sentences,
        threshold: float = 0.5,
        long_document: LongDocument = "chunk_max",
    ) -> GenerativeVerifier:
        """Starts the engine and its process: a minute or so, during which the loop stands still.

        Raises :class:`~models.errors.ModelUnusableError` when the model does not load.
        """
        prepare_environment(options)
        from models.vllm_engine import VllmEngine  # noqa: PLC0415 (it reads the environment just prepared)

        engine = VllmEngine(options)
        try:
            return cls(
                engine,
                name=options.name or f"{options.model.name}@{fingerprint(options.model)}",
                sentences=sentences,
                max_model_len=options.max_model_len,
                threshold=threshold,
                long_document=long_document,
                patience_s=options.patience_s,
            )
        except BaseException:
            engine.close()
            raise

    async def verify(self, pairs: Sequence[Pair], *, deadline: Deadline) -> list[Verdict]:
        return (await self.read(pairs, deadline=deadline))[0]

    async def read(self, pairs: Sequence[Pair], *, deadline: Deadline) -> tuple[list[Verdict], Scored]:
        """:meth:`verify` with what was read of each premise, and the time it took.

        Raises :class:`~models.errors.InputTooLongError` when a claim leaves no room for a document, or a document does
        not fit and is to be refused; :class:`~serving.answer.errors.DeadlineExceededError`, with everything that was
        under way aborted; :class:`~serving.answer.errors.UnavailableError` when the engine fails.
        """
        began = self._clock()
        try:
            if deadline.passed:
                raise TimeoutError
            async with asyncio.timeout(deadline.remaining()):
                asked = await self._read(pairs)
                read_at = self._clock()
                chances = await self._ask([prompt for one in asked for row in one.prompts for prompt in row])
        except TimeoutError:
            raise DeadlineExceededError(f"The deadline passed before the {self.name} was done.") from None
        ended = self._clock()
        tokens = sum(len(prompt) for one in asked for row in one.prompts for prompt in row)
        phases = Phases(read_at - began, 0.0, ended - read_at, ended - began, tokens, tokens)
        scored = Scored(_settled(asked, chances), phases)
        return [Verdict(pair.score, self._reason(pair.score)) for pair in scored.pairs], scored

    async def warm_up(self) -> None:
        await self.verify([Pair("A text.", "A claim.")], deadline=Deadline.after(self._patience_s, self._clock))

    def health(self) -> None:
        """Raises :class:`~serving.answer.errors.UnavailableError` when the engine has died or nothing comes out."""
        if self._engine.dead:
            raise UnavailableError("The verifier's engine has died.")
        if self._progress.stalled:
            raise UnavailableError(
                f"The verifier has said nothing for {self._progress.silent_s():.0f} s with "
                f"{self._progress.in_flight} requests in flight."
            )

    def close(self) -> None:
        """Ends the engine and its process, on the loop it was started on, from whatever thread this is called."""
        self._encoding.shutdown(wait=False, cancel_futures=True)
        if threading.get_ident() == self._thread or not self._loop.is_running():
            self._engine.close()
            return

        async def close() -> None:
            self._engine.close()

        asyncio.run_coroutine_threadsafe(close(), self._loop).result()

    async def _read(self, pairs: Sequence[Pair]) -> list[_Asked]:
        """The prompts, made on a thread of their own: a long document takes a while."""
        loop = asyncio.get_running_loop()
        return [await loop.run_in_executor(self._encoding, self._prompts, pair) for pair in pairs]

    def _prompts(self, pair: Pair) -> _Asked:
        said = [said for sentence in self._sentences(readable(pair.claim)) if (said := sentence.strip())]
        if not said:
            return _Asked((), truncated=False)
        frame = max(len(self._chat.encode(messages("", sentence))) for sentence in said)
        longest = self._max_model_len - 1  # its verdict is a token
        room = min(CHUNK, longest - frame)
        while True:
            if room < self._max_model_len // _DOCUMENT_SHARE:
                raise InputTooLongError(
                    f"A claim with its instructions is {frame} tokens, which leaves no room for a document in a window "
                    f"of {self._max_model_len}: make it shorter, or raise models.verifier.max_tokens."
                )
            laid = lay_out(readable(pair.premise), self._offsets, room, self._long_document)
            prompts = tuple(
                tuple(self._chat.encode(messages(text, sentence)) for text in laid.texts) for sentence in said
            )
            over = max((len(prompt) for row in prompts for prompt in row), default=0) - longest
            if over <= 0:
                return _Asked(prompts, laid.truncated)
            room -= over  # where a document meets the words around it, there may be a token more

    def _offsets(self, text: str) -> list[tuple[int, int]]:
        return self._words.encode(text, add_special_tokens=False).offsets

    async def _ask(self, prompts: Sequence[list[int]]) -> list[float]:
        """The chance of a yes to each prompt. When one fails or this is cancelled, all that are under way are aborted.

        They are sent in the order of their tokens: prompts that begin alike, which are of one document, meet each other
        in the engine's cache before anything else pushes it out.
        """
        order = sorted(range(len(prompts)), key=lambda number: prompts[number])
        tasks = {number: asyncio.ensure_future(self._chance(prompts[number])) for number in order}
        try:
            await asyncio.gather(*tasks.values())
        finally:
            for task in tasks.values():
                task.cancel()
            await asyncio.gather(*tasks.values(), return_exceptions=True)
        return [tasks[number].result() for number in range(len(prompts))]

    async def _chance(self, prompt: list[int]) -> float:
        self._progress.began()
        try:
            first = await self._engine.first_token(prompt, f"verify-{next(self._numbers)}", top=TOP)
        finally:
            self._progress.ended()
        return chance_of_yes(first)

    def _reason(self, score: float) -> Reason:
        return Reason.ENTAILED if score > self._threshold else Reason.NOT_ENTAILED


def _settled(asked: Sequence[_Asked], chances: Sequence[float]) -> tuple[PairScore, ...]:
    """Each pair's score, from the chances of its prompts, pair after pair."""
    left = iter(chances)
    return tuple(settled([[next(left) for _ in row] for row in one.prompts], truncated=one.truncated) for one in asked)
