"""An OpenAI-compatible endpoint that answers as it is told to, over real HTTP on this machine. It holds no model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Said:
    """One response: an error with a status, or events (text pieces or whole chunks), ``stall_s`` seconds apart."""

    status: int = 200
    error: dict[str, Any] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    events: tuple[str | dict[str, Any], ...] = ()
    finish: str | None = "stop"
    usage: tuple[int, int] | None = (11, 3)
    stall_s: float = 0.0
    raw: bytes | None = None
    hangs_up: bool = False


class FakeEndpoint:
    """Gives its responses in turn, the last one again and again, and keeps what it was asked."""

    def __init__(self, *script: Said) -> None:
        self._script = list(script)
        self.url = ""
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.left = asyncio.Event()

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[FakeEndpoint]:
        server = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        try:
            yield self
        finally:
            server.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            headers = dict(line.lower().split(": ", 1) for line in head[1:] if ": " in line)
            self.headers.append(headers)
            self.bodies.append(json.loads(await reader.readexactly(int(headers["content-length"]))))
            said = self._script.pop(0) if len(self._script) > 1 else self._script[0]
            leaving = asyncio.create_task(reader.read())
            await asyncio.wait({leaving, asyncio.create_task(self._say(said, writer))}, return_when="FIRST_COMPLETED")
            if leaving.done():
                self.left.set()
        except (ConnectionError, asyncio.IncompleteReadError):
            self.left.set()
        finally:
            writer.close()

    async def _say(self, said: Said, writer: asyncio.StreamWriter) -> None:
        if said.hangs_up and not said.events:
            return
        kind = "text/event-stream" if said.status == 200 else "application/json"
        lines = [f"HTTP/1.1 {said.status} X", f"content-type: {kind}", "connection: close"]
        lines += [f"{name}: {value}" for name, value in said.headers.items()]
        writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
        if said.status != 200:
            writer.write(json.dumps({"error": said.error}).encode())
        for event in said.events:
            await asyncio.sleep(said.stall_s)
            chunk = event if isinstance(event, dict) else {"choices": [{"index": 0, "delta": {"content": event}}]}
            writer.write(b"data: " + json.dumps(chunk).encode() + b"\n\n")
            await writer.drain()
        if said.raw is not None:
            writer.write(said.raw)
        elif said.status == 200 and not said.hangs_up:
            await asyncio.sleep(said.stall_s)
            end = {"choices": [{"index": 0, "delta": {}, "finish_reason": said.finish}]}
            writer.write(b"data: " + json.dumps(end).encode() + b"\n\n")
            if said.usage:
                used = {
                    "choices": [],
                    "usage": dict(zip(("prompt_tokens", "completion_tokens"), said.usage, strict=True)),
                }
                used["usage"]["total_tokens"] = sum(said.usage)  # type: ignore[index]
                writer.write(b"data: " + json.dumps(used).encode() + b"\n\n")
            writer.write(b"data: [DONE]\n\n")
        await writer.drain()
