"""``POST /v1/check``: claims against facts, shaped as Google's check-grounding is, with our reasons beside it."""

from __future__ import annotations

from typing import Annotated

from fastapi import Request, Response
from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from serving.answer.direct import CheckedClaim, CheckedText
from serving.answer.types import Citation, Passage, Phases, Reason, Span
from serving.gateway.access import access_of
from serving.gateway.backend import Backend, Limits
from serving.gateway.openapi import POST_ERRORS, DescribedApi, errors
from serving.gateway.phases import DESCRIBED, tell
from serving.gateway.routes.common import Body, Timeout
from serving.gateway.tenant import tenant_of

MAX_FACTS = 200


class CamelBody(Body):
    """Base of bodies in Google's spelling."""

    model_config = ConfigDict(extra="forbid", alias_generator=to_camel)


class CamelOut(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)


class Fact(CamelBody):
    fact_text: Annotated[str, Field(description="What is taken for true.")]
    attributes: Annotated[
        dict[str, str],
        Field(default_factory=dict, max_length=20, description="`title` is read with the fact; others change nothing."),
    ]


class GroundingSpec(CamelBody):
    citation_threshold: Annotated[
        float | None,
        Field(ge=0.0, le=1.0, description="The least score of a citation; the server's floor when left out."),
    ] = None


class CheckRequest(CamelBody):
    answer_candidate: Annotated[str, Field(pattern=r"\S", description="The text to check; Markdown or plain.")]
    facts: Annotated[list[Fact], Field(max_length=MAX_FACTS)]
    grounding_spec: GroundingSpec = GroundingSpec()


class CitedChunk(CamelOut):
    """A fact that is cited; ``source`` is its number in the request."""

    chunk_text: str
    source: str


class ClaimChecked(CamelOut):
    """A sentence of the text, by its UTF-8 byte offsets. ``citationIndices`` are places in ``citedChunks``; ``reason``
    is ``entailed``, or why nothing is cited, and ``words`` are those that decided it. ``contradictionScore`` is how
    much one of the facts says the opposite, where the verifier tells that apart from saying nothing; else null.
    """

    start_pos: int
    end_pos: int
    claim_text: str
    citation_indices: list[int]
    grounding_check_required: bool
    score: Annotated[float, Field(ge=0.0, le=1.0)]
    reason: Reason
    words: list[str]
    contradiction_score: Annotated[float, Field(ge=0.0, le=1.0)] | None = None


class CheckMeta(CamelOut):
    """How many pairs of sentence and fact the model read, in how many pieces, and whether some of a fact was left."""

    pairs: int
    chunks: int
    truncated: bool


class CheckResponse(CamelOut):
    """``supportScore`` is the share of the claims that need grounding which the facts prove."""

    support_score: Annotated[float, Field(ge=0.0, le=1.0)]
    cited_chunks: list[CitedChunk]
    claims: list[ClaimChecked]
    model: str
    meta: CheckMeta

    @classmethod
    def of(cls, checked: CheckedText, facts: list[Fact]) -> CheckResponse:
        cited = sorted({citation.chunk for claim in checked.claims for citation in claim.citations})
        places = {chunk: place for place, chunk in enumerate(cited)}
        return cls(
            support_score=checked.support,
            cited_chunks=[CitedChunk(chunk_text=facts[chunk].fact_text, source=str(chunk)) for chunk in cited],
            claims=[
                ClaimChecked(
                    start_pos=claim.span.start,
                    end_pos=claim.span.end,
                    claim_text=claim.text,
                    citation_indices=[places[citation.chunk] for citation in claim.citations],
                    grounding_check_required=claim.required,
                    score=claim.score,
                    reason=claim.reason,
                    words=list(claim.words),
                    contradiction_score=claim.contradiction,
                )
                for claim in checked.claims
            ],
            model=checked.model,
            meta=CheckMeta(pairs=checked.pairs, chunks=checked.chunks, truncated=checked.truncated),
        )


DESCRIPTION = """\
Says which sentences of a text the facts prove, and with which of them.

The request and the answer are those of Google's check-grounding: `answerCandidate`, `facts`, `citationThreshold`;
`supportScore`, `citedChunks`, `claims` with their UTF-8 byte offsets. The check is the one that our own answers pass:
guards on numbers, dates, units, names and negation, then the verifier. `reason` says why a claim is not proven.
"""


def add(api: DescribedApi, backend: Backend, limits: Limits) -> None:
    api.show("check", requests={"two sentences": _ASKED}, responses={200: {"one is proven": _checked()}})

    @api.post(
        "/v1/check",
        operation_id="check",
        tags=["models"],
        summary="Check a text against facts",
        description=DESCRIPTION,
        response_description="Every sentence, with what proves it.",
        responses={**errors(*POST_ERRORS), 200: {"headers": DESCRIBED}},
    )
    async def check(
        body: CheckRequest,
        request: Request,
        response: Response,
        timeout: Timeout = None,  # noqa: ASYNC109 - it travels with the text
    ) -> CheckResponse:
        access = access_of(request)
        access.asked(body.answer_candidate)
        access.details["facts"] = len(body.facts)
        checked = await backend.check(
            body.answer_candidate,
            [
                Passage(str(number), fact.fact_text, title=fact.attributes.get("title", ""))
                for number, fact in enumerate(body.facts)
            ],
            timeout_s=timeout or limits.default_timeout_s,
            tenant=tenant_of(request),
            threshold=body.grounding_spec.citation_threshold,
        )
        tell(checked.phases, request, response)
        return CheckResponse.of(checked, body.facts)


_FACT = "The tower was finished in 1889. It is 330 metres tall."
_TEXT = "The tower is 330 metres tall. It was finished in 1887."
_ASKED = {"answerCandidate": _TEXT, "facts": [{"factText": _FACT}], "groundingSpec": {"citationThreshold": 0.6}}


def _checked() -> CheckResponse:
    claims = (
        CheckedClaim(_TEXT[:29], Span(0, 29), Reason.ENTAILED, 0.9412, (Citation(0, 0.9412),)),
        CheckedClaim(_TEXT[30:], Span(30, 54), Reason.DATE_MISMATCH, 0.0, words=("1887",)),
    )
    checked = CheckedText(claims, 2, 2, truncated=False, phases=Phases(), model="minicheck@5e6f7a8b9c0d")
    return CheckResponse.of(checked, CheckRequest.model_validate(_ASKED).facts)
