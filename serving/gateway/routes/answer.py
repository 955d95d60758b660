"""``POST /v1/answer``."""

from __future__ import annotations

from typing import Annotated

from fastapi import Request
from pydantic import Field

from serving.answer.wire import Answer
from serving.gateway import examples
from serving.gateway.access import access_of
from serving.gateway.backend import MAX_TIMEOUT_S, Backend, Limits
from serving.gateway.identity import request_id_of
from serving.gateway.openapi import POST_ERRORS, DescribedApi, errors, event_stream
from serving.gateway.routes.common import Body, Timeout
from serving.gateway.streaming import EventStream


class AnswerRequest(Body):
    question: Annotated[
        str, Field(description="A question in natural language, not empty.", json_schema_extra={"minLength": 1})
    ]
    timeout_s: Annotated[
        float | None, Field(gt=0, le=MAX_TIMEOUT_S, description="Deadline in seconds; the server's when left out.")
    ] = None
    stream: Annotated[bool, Field(description="Send what is found and proven as it comes, as server-sent events.")] = (
        False
    )


DESCRIPTION = """\
Answers a question with proven, cited sentences, or declines.

Every sentence of `text` is entailed by the passages it cites; `marked_text` is the same with `[n]` markers. Offsets in
`grounding` are UTF-8 bytes of `text`.

With `stream: true`, server-sent events, each with JSON as its data:

* `route`: the route that was chosen, the one that runs, and why (`Answer.route`).
* `passages`: `{passages}`, the context, as in the answer.
* `claim`: `{text, citations: [{chunk, score, marker}]}`, once it is proven; `marker` is `chunk` + 1. What was sent is
  in the answer, in the same order.
* `dropped`: `{reason, count}` of claims that were dropped. Their text is never sent.
* `answer`: the whole Answer; the last event.
* `error`: in its place, what an error response holds. An error before the first event is an error response.

Ids are `REQUEST_ID:NUMBER`, from 1. Comments keep the connection open. A stream cannot be resumed: `Last-Event-ID` is
not read, and asking again answers anew. Leaving ends the work on the question.
"""


def add(api: DescribedApi, backend: Backend, limits: Limits) -> None:
    api.show(
        "answer",
        requests={
            "a question": {"question": examples.QUESTION},
            "with a deadline": {"question": examples.QUESTION, "timeout_s": 20},
            "as a stream": {"question": examples.QUESTION, "stream": True},
        },
        responses={
            200: {
                "answered": examples.answered(),
                "declined": examples.declined(),
                "search": examples.searched(),
            }
        },
    )

    @api.post(
        "/v1/answer",
        operation_id="answer",
        tags=["answers"],
        summary="Answer a question",
        response_description="The answer, a decline, or the passages of a navigational question: see `outcome`.",
        description=DESCRIPTION,
        response_model=Answer,
        responses={**errors(*POST_ERRORS), 200: {"content": event_stream({"answered": examples.streamed()})}},
    )
    async def answer(
        body: AnswerRequest,
        request: Request,
        timeout: Timeout = None,  # noqa: ASYNC109 - it travels with the question
    ) -> Answer | EventStream:
        access = access_of(request)
        access.asked(body.question)
        request_id = request_id_of(request)
        timeout_s = body.timeout_s or timeout or limits.default_timeout_s
        if body.stream:
            return EventStream(backend.events(body.question, request_id=request_id, timeout_s=timeout_s), request)
        answered = await backend.answer(body.question, request_id=request_id, timeout_s=timeout_s)
        access.answered(answered)
        return answered
