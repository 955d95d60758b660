"""A streamed answer: events are read as fast as they come and sent as fast as the caller takes them.

Between the two lies a buffer, which holds no more than one answer's events, so a slow caller holds up nobody but
himself. One who leaves ends the reading, and with it all that works on the question.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing

from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from serving.answer.errors import UnavailableError
from serving.answer.events import Event, Finished
from serving.gateway.access import access_of
from serving.gateway.errors import ErrorOut, reported
from serving.gateway.identity import request_id_of
from serving.gateway.stream_events import ERROR, KEEP_ALIVE, Encoder, name_of, told

KEEP_ALIVE_S = 15.0
"""Seconds of silence after which a comment is sent: proxies close what is silent for long, many after 30 or 60."""

Sleep = Callable[[float], Awaitable[None]]


class Reading:
    """Events, read ahead by a task of their own. Close it."""

    def __init__(self, events: AsyncGenerator[Event, None], sleep: Sleep) -> None:
        # Without a bound of its own: a reply has so many tokens at the most, and its events are fewer.
        self._read: deque[Event | Exception | None] = deque()
        self._some = asyncio.Event()
        self._sleep = sleep
        self._task = asyncio.create_task(self._read_ahead(events))

    async def next(self) -> Event | None:
        """The next event, None after the last. Raises what the events raise."""
        await self._some.wait()
        item = self._read.popleft()
        if not self._read:
            self._some.clear()
        if isinstance(item, Exception):
            raise item
        return item

    async def silent(self) -> bool:
        """Waits for the next event. Whether :data:`KEEP_ALIVE_S` seconds passed without it."""
        if not self._read:
            waits = [asyncio.ensure_future(self._some.wait()), asyncio.ensure_future(self._sleep(KEEP_ALIVE_S))]
            try:
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for wait in waits:
                    wait.cancel()
        return not self._read

    async def close(self) -> None:
        """Reads no more, and closes the events."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _read_ahead(self, events: AsyncGenerator[Event, None]) -> None:
        try:
            async with aclosing(events):
                async for event in events:
                    self._put(event)
            self._put(None)
        except Exception as error:
            self._put(error)
        except asyncio.CancelledError:
            # By us, and nobody reads on; or by a part that is being stopped, and somebody does.
            self._put(UnavailableError("the answer was broken off, since a part of it is being stopped; ask again"))
            raise

    def _put(self, item: Event | Exception | None) -> None:
        self._read.append(item)
        self._some.set()


class EventStream(StreamingResponse):
    """The response for a question whose events are sent as they come.

    What is raised before the first event is raised out of it, and has a response of its own. Later it is an event.
    """

    media_type = "text/event-stream"

    def __init__(self, events: AsyncGenerator[Event, None], request: Request, *, sleep: Sleep = asyncio.sleep) -> None:
        # The last header is nginx's: it sends on at once what it would else collect.
        super().__init__(self._frames(), headers={"cache-control": "no-cache", "x-accel-buffering": "no"})
        self._events = events
        self._request = request
        self._sleep = sleep
        self._access = access_of(request)
        self._ended = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del scope
        self._reading = Reading(self._events, self._sleep)
        sending, leaving = (
            asyncio.create_task(self._send(send)),
            asyncio.create_task(self.listen_for_disconnect(receive)),
        )
        try:
            await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if sending.done():
                self._ended = True
                sending.result()
        finally:
            if not self._ended:
                self._access.caller_left()
            sending.cancel()
            leaving.cancel()
            await self._reading.close()
            await asyncio.gather(sending, leaving, return_exceptions=True)

    async def _send(self, send: Send) -> None:
        self._first = await self._reading.next()
        await self.stream_response(send)

    async def _frames(self) -> AsyncGenerator[bytes, None]:
        encoder = Encoder(request_id_of(self._request))
        event = self._first
        try:
            while event is not None:
                said = told(event)
                if isinstance(event, Finished):
                    self._access.answered(event.answer)
                    self._ended = True
                yield encoder.encode(name_of(said), said)
                while await self._reading.silent():
                    yield KEEP_ALIVE
                event = await self._reading.next()
        except Exception as error:
            known = reported(self._request, error)
            self._ended = True
            yield encoder.encode(ERROR, ErrorOut.of(known, request_id_of(self._request)))
