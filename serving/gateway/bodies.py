"""How a body is read: bounded, JSON by RFC 8259 and nothing looser, with an error of ours for everything else."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from typing import Any, NoReturn

from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from serving.answer.errors import (
    BodyTooLargeError,
    MalformedJsonError,
    MalformedRequestError,
    UnsupportedMediaTypeError,
)
from serving.logs import shortened


class BodyLimit:
    """Refuses a body larger than ``max_bytes``: by its declared length before it is read, else by counting.

    Raises :class:`BodyTooLargeError`, and :class:`MalformedRequestError` for a declared length that is none.
    """

    def __init__(self, app: ASGIApp, *, max_bytes: int) -> None:
        self._app = app
        self._max_bytes = max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        self._refuse_over(_declared_length(Request(scope)))
        received = 0

        async def receive_bounded() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            self._refuse_over(received)
            return message

        await self._app(scope, receive_bounded, send)

    def _refuse_over(self, size: int) -> None:
        if size > self._max_bytes:
            raise BodyTooLargeError(f"the body is too large; at most {self._max_bytes} bytes are taken")


def _declared_length(request: Request) -> int:
    given = request.headers.get("content-length", "0")
    if not (given.isascii() and given.isdecimal()):
        raise MalformedRequestError(f"content-length is {shortened(given)!r}, which is no length")
    # More digits than any length has: Python refuses to read thousands of them.
    return int(given[:20])


class JsonRequest(Request):
    """A request whose JSON is read by :func:`read_json`, once."""

    async def json(self) -> Any:
        if not hasattr(self, "_read"):
            self._read = read_json(await self.body())
        return self._read


class JsonRoute(APIRoute):
    """A route whose body, where it takes one, is JSON that says it is."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handle_json(request: Request) -> Response:
            strict = JsonRequest(request.scope, request.receive)
            # Read here: FastAPI makes "there was an error parsing the body" of whatever is raised while it reads.
            if self.body_field is not None and await strict.body():
                _refuse_other_kinds(request)
                await strict.json()
            return await handle(strict)

        return handle_json


def _refuse_other_kinds(request: Request) -> None:
    kind = request.headers.get("content-type", "").split(";")[0].strip().lower()
    if kind != "application/json":
        said = f"the body is {shortened(kind)}" if kind else "the body does not say what it is"
        raise UnsupportedMediaTypeError(f"{said}; send content-type: application/json")


def read_json(data: bytes) -> Any:
    """The value of a JSON text in UTF-8. Raises :class:`MalformedJsonError` for anything that RFC 8259 does not have.

    That is also: NaN and Infinity, a byte order mark, and what RFC 8259 calls unpredictable: a name twice in one
    object, of which readers keep this one or that, and half of a surrogate pair, which no encoder takes.
    """
    try:
        value = json.loads(data.decode(), parse_constant=_refuse_constant, object_pairs_hook=_each_once)
        if b"\\ud" in data.lower():
            json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise MalformedJsonError(f"the body is no JSON: {error.msg} at character {error.pos}") from None
    except UnicodeDecodeError as error:
        raise MalformedJsonError(f"the body is no JSON: byte {error.start} is not UTF-8") from None
    except UnicodeEncodeError:
        raise MalformedJsonError("the body has half of a surrogate pair, which is no character") from None
    except RecursionError:
        raise MalformedJsonError("the body is nested too deeply") from None
    except ValueError:
        raise MalformedJsonError("the body has a number of too many digits") from None
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise MalformedJsonError(f"the body is no JSON: it has no {name}; leave the field out instead")


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    read = dict(pairs)
    if len(read) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise MalformedJsonError(f"the body has {shortened(twice)!r} twice in one object; send it once")
    return read
