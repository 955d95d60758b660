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
from serving.gateway.openapi import POST_ERRORS, DescribedApi, errors
from serving.gateway.routes.common import Body, Timeout


class AnswerRequest(Body):
    question: Annotated[
        str, Field(description="A question in natural language, not empty.", json_schema_extra={"minLength": 1})
    ]
    timeout_s: Annotated[
        float | None, Field(gt=0, le=MAX_TIMEOUT_S, description="Deadline in seconds; the server's when left out.")
    ] = None


def add(api: DescribedApi, backend: Backend, limits: Limits) -> None:
    api.show(
        "answer",
        requests={
            "a question": {"question": examples.QUESTION},
            "with a deadline": {"question": examples.QUESTION, "timeout_s": 20},
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
        responses=errors(*POST_ERRORS),
    )
    async def answer(
        body: AnswerRequest,
        request: Request,
        timeout: Timeout = None,  # noqa: ASYNC109 - it travels with the question
    ) -> Answer:
        """Answers a question with proven, cited sentences, or declines.

        Every sentence of `text` is entailed by the passages it cites; `marked_text` is the same with `[n]` markers.
        Offsets in `grounding` are UTF-8 bytes of `text`.
        """
        access = access_of(request)
        access.asked(body.question)
        answered = await backend.answer(
            body.question,
            request_id=request_id_of(request),
            timeout_s=body.timeout_s or timeout or limits.default_timeout_s,
        )
        access.answered(answered)
        return answered
