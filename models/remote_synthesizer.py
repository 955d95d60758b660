"""The synthesizer for a model that is served elsewhere: any OpenAI-compatible endpoint, through its chat API."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Any

import openai

from models.endpoint import Endpoint, asked_wait, constrained, translated
from models.errors import EndpointError
from serving.answer.errors import UnavailableError
from serving.answer.seams import Generation
from serving.answer.types import Deadline, Delta

DEADLINE = "deadline"
"""The finish reason of a reply that the deadline cut off."""

_LONGEST_BACKOFF_S = 8.0
_NO_KEY = "none"  # the client insists on one


class EndpointSynthesizer:
    """The seam :class:`~serving.answer.seams.Synthesizer`. One instance a replica; close it at the end.

    ``sleep`` and ``dice`` (a number in [0, 1)) are for tests.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        dice: Callable[[], float] = random.random,
    ) -> None:
        self.name = f"{endpoint.model}@{endpoint.host}"
        self._endpoint = endpoint
        self._sleep = sleep
        self._dice = dice
        key = endpoint.key.get_secret_value() if endpoint.key else _NO_KEY
        # We try again ourselves: within the deadline, and never once something was written.
        self._client = openai.AsyncOpenAI(base_url=endpoint.base_url, api_key=key, max_retries=0, timeout=None)

    async def generate(self, request: Generation, *, deadline: Deadline) -> AsyncGenerator[Delta, None]:
        """The reply's deltas as they come. The last has a finish reason (``stop``, ``length`` or ``deadline``).

        A call that fails before its first token is made again, unless time would run out first.

        Raises :class:`~models.errors.EndpointKeyError` when the key is refused,
        :class:`~models.errors.ModelNotFoundError`, :class:`~models.errors.InputTooLongError`,
        :class:`~models.errors.GrammarError` when the endpoint takes no such constraint,
        :class:`~serving.answer.errors.OverloadedError` and :class:`~serving.answer.errors.UnavailableError`.
        """
        attempt = 0
        while True:
            attempt += 1
            wrote = False
            try:
                async with aclosing(self._attempt(request, deadline)) as deltas:
                    async for delta in deltas:
                        wrote = True
                        yield delta
            except (openai.APIError, UnavailableError) as error:
                pause = None if wrote or attempt == self._endpoint.attempts else self._pause(error, attempt)
                if pause is None or pause >= deadline.remaining():
                    raise translated(error, self._endpoint) from None
            else:
                return
            await self._sleep(pause)

    async def health(self) -> None:
        """Never raises: an endpoint that is down is an incident of each question, and no new replica would mend it."""

    async def close(self) -> None:
        """Closes the connections."""
        await self._client.close()

    async def _attempt(self, request: Generation, deadline: Deadline) -> AsyncGenerator[Delta, None]:
        """One call. Past the deadline, what was written so far ends with that as its finish reason."""
        finish, used, pieces = None, (0, 0), 0
        try:
            stream = await _within(deadline, self._client.chat.completions.create(**self._arguments(request)))
        except TimeoutError:
            yield Delta("", DEADLINE)
            return
        try:
            while (chunk := await _within(deadline, anext(stream, None))) is not None:
                if chunk.usage is not None:
                    used = (chunk.usage.prompt_tokens, chunk.usage.completion_tokens)
                for choice in chunk.choices or ():
                    finish = choice.finish_reason or finish
                    if choice.delta and choice.delta.content:
                        pieces += 1
                        yield Delta(choice.delta.content)
        except TimeoutError:
            finish = DEADLINE
        except (ValueError, RecursionError) as error:
            raise UnavailableError(f"The endpoint {self._endpoint.host} sends what is no chat reply.") from error
        finally:
            await stream.close()  # which is what makes the endpoint stop
        # An endpoint that reports no usage is counted in pieces, which are tokens as a rule.
        yield Delta("", self._finish_reason(finish), used[0], used[1] or pieces)

    def _arguments(self, request: Generation) -> dict[str, Any]:
        schema = json.loads(request.schema) if request.schema is not None else None
        return {
            "model": self._endpoint.model,
            "messages": [{"role": message.role, "content": message.content} for message in request.messages],
            "temperature": request.temperature,
            "stream": True,
            "stream_options": {"include_usage": True},
            self._endpoint.length_field: request.max_tokens,
            **constrained(request, self._endpoint.constraint, schema),
        }

    def _finish_reason(self, given: str | None) -> str:
        if given in ("stop", "length", DEADLINE):
            return given
        if given == "content_filter":
            raise EndpointError(f"The endpoint {self._endpoint.host} withheld the reply by a filter of its own.")
        raise UnavailableError(f"The endpoint {self._endpoint.host} broke its reply off.")

    def _pause(self, error: Exception, attempt: int) -> float | None:
        """Seconds to wait before the next attempt, None when there is to be none."""
        backoff = min(_LONGEST_BACKOFF_S, self._endpoint.backoff_s * 2.0 ** (attempt - 1))
        jittered = backoff * (0.5 + self._dice() / 2)
        if not isinstance(error, openai.APIStatusError):
            return jittered
        if error.status_code == 429:
            asked = asked_wait(error)
            return jittered if asked is None else asked
        return jittered if error.status_code >= 500 or error.status_code in (408, 409) else None


async def _within(deadline: Deadline, awaitable: Any) -> Any:
    """Awaits until the deadline. Raises ``TimeoutError``."""
    async with asyncio.timeout(deadline.remaining()):
        return await awaitable
