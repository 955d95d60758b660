"""One line for each request: what was asked for, what became of it, how long each stage took.

A question is told by its length alone, unless ``questions`` is on: a hash of it would still tell who asks what others
have asked. Nothing here ever sees a passage, and of an answer only its outcome and its figures are kept.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from serving.answer.types import Clock
from serving.answer.wire import Answer
from serving.gateway.identity import request_id_of
from serving.logs import shortened, text_line

log = logging.getLogger(__name__)

PROBES = frozenset({"/healthz", "/readyz"})
_KEY = "answer.access"


@dataclass(slots=True)
class Access:
    """What is known of a request by now. Routes tell it what they learn; the line is written when all is sent."""

    method: str
    path: str
    request_id: str
    question: str | None = None
    status: int | None = None
    outcome: str = "ok"
    left: bool = False
    details: dict[str, object] = field(default_factory=dict)
    stages_ms: dict[str, float] = field(default_factory=dict)

    def asked(self, question: str) -> None:
        """``question`` is a question or a query, whole."""
        self.question = question

    def answered(self, answer: Answer) -> None:
        """The request ended in this answer. Streams say so too, when it is finished."""
        self.outcome = answer.outcome.value
        self.details["chosen"], self.details["ran"] = answer.route.chosen.value, answer.route.ran.value
        if answer.decline is not None:
            self.details["reason"] = (answer.decline.cause or answer.decline.reason).value
        else:
            self.details["verified"] = answer.verified
        self.details |= answer.usage.model_dump()
        stages = answer.timings_ms.model_dump(exclude={"total"})
        self.stages_ms = {stage: round(ms, 1) for stage, ms in stages.items()}

    def failed(self, code: str) -> None:
        """The request ended in an error; also one that comes after a stream has begun."""
        self.outcome = "error"
        self.details["reason"] = code

    def caller_left(self) -> None:
        """The caller went away before a stream was finished, after its status was sent."""
        self.left = True

    def fields(self, ms: float, *, questions: bool) -> dict[str, object]:
        """The line's fields, each a plain value, but for ``stages_ms`` (milliseconds by stage)."""
        left = self.left or self.status is None
        told: dict[str, object] = {
            "request_id": self.request_id,
            "method": shortened(self.method),
            "path": shortened(self.path),
            "status": 499 if left else self.status,
            "outcome": "left" if left else self.outcome,
            **self.details,
            "ms": round(ms, 1),
            "stages_ms": self.stages_ms,
        }
        if self.question is not None:
            told["question_chars"] = len(self.question)
            if questions:
                told["question"] = self.question
        return told


def access_of(request: Request) -> Access:
    """What the request's line will say; a route adds to it."""
    access: Access = request.scope.setdefault(
        _KEY, Access(request.method, request.scope["path"], request_id_of(request))
    )
    return access


class AccessLog:
    """Writes the line when the response is sent, when it broke off, and when the caller left (status 499).

    Probes are logged at DEBUG, faults of ours at WARNING, everything else at INFO.
    """

    def __init__(self, app: ASGIApp, *, questions: bool, clock: Clock = time.monotonic) -> None:
        self._app = app
        self._questions = questions
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        access, began = access_of(Request(scope)), self._clock()

        async def send_noted(message: Message) -> None:
            if message["type"] == "http.response.start":
                access.status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, send_noted)
        finally:
            # The template of the route, where there is one: what is after it may be anything.
            access.path = getattr(scope.get("route"), "path", access.path)
            self._write(access, 1000 * (self._clock() - began))

    def _write(self, access: Access, ms: float) -> None:
        level = logging.INFO
        if access.path in PROBES:
            level = logging.DEBUG
        elif access.status is not None and access.status >= 500:
            level = logging.WARNING
        if not log.isEnabledFor(level):
            return
        fields = access.fields(ms, questions=self._questions)
        # Both: a JSON formatter writes the extra fields as keys, a text formatter the message alone.
        log.log(level, "request %s", text_line(_flat(fields)), extra=fields)


def _flat(fields: dict[str, object]) -> dict[str, object]:
    """For text: a name for each stage."""
    flat: dict[str, object] = {}
    for name, value in fields.items():
        if isinstance(value, dict):
            flat |= {f"{stage}_ms": ms for stage, ms in value.items()}
        else:
            flat[name] = value
    return flat
