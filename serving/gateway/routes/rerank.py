"""``POST /v1/rerank``: what Cohere, Jina, infinity and vLLM clients send, and an answer that all of them read."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import Request, Response
from pydantic import BaseModel, Field

from serving.answer.direct import Reranked
from serving.answer.types import PairScore, Phases, Scored
from serving.gateway import examples
from serving.gateway.access import access_of
from serving.gateway.backend import Backend, Limits, LongDocument
from serving.gateway.identity import request_id_of
from serving.gateway.openapi import POST_ERRORS, DescribedApi, errors
from serving.gateway.phases import DESCRIBED, tell
from serving.gateway.routes.common import Body, Timeout
from serving.gateway.tenant import tenant_of

MAX_DOCUMENTS = 1_000
PATHS = {"rerank": "/v1/rerank", "rerank_v2": "/v2/rerank", "rerank_bare": "/rerank"}
_UNUSED = "Taken for the sake of other APIs' clients; changes nothing."


class DocumentIn(Body):
    text: str


class RerankRequest(Body):
    query: Annotated[str, Field(pattern=r"\S", description="What the documents are ranked for. It is never cut.")]
    documents: Annotated[list[str | DocumentIn], Field(min_length=1, max_length=MAX_DOCUMENTS)]
    top_n: Annotated[int | None, Field(ge=0, description="Results at most; all when left out or 0.")] = None
    return_documents: Annotated[bool, Field(description="Send each document's text back.")] = False
    long_document: Annotated[
        LongDocument | None,
        Field(
            description="What becomes of a document that does not fit the model beside the query: it is read in pieces "
            "and scores as its best one (`chunk_max`), its beginning alone is read and `truncated` says so "
            "(`truncate`), or the call is refused (`error`). The server's setting when left out."
        ),
    ] = None
    model: Annotated[str | None, Field(description=f"{_UNUSED} The response names the model that ran.")] = None
    max_tokens_per_doc: Annotated[int | None, Field(ge=1, description=_UNUSED)] = None
    priority: Annotated[int | None, Field(description=_UNUSED)] = None
    user: Annotated[str | None, Field(description=_UNUSED)] = None

    @property
    def texts(self) -> list[str]:
        return [document if isinstance(document, str) else document.text for document in self.documents]


class DocumentOut(BaseModel):
    text: str


class RerankResult(BaseModel):
    """A document by its number in the request. ``best_chunk`` is the piece that scored, of ``chunks`` that were read;
    null when the document is empty.
    """

    index: int
    relevance_score: Annotated[float, Field(ge=0.0, le=1.0)]
    document: DocumentOut | None
    chunks: int
    best_chunk: int | None
    truncated: bool


class RerankUsage(BaseModel):
    prompt_tokens: int
    total_tokens: int


class ApiVersion(BaseModel):
    version: str = "2"


class RerankTokens(BaseModel):
    input_tokens: int
    output_tokens: int = 0


class RerankMeta(BaseModel):
    api_version: ApiVersion
    tokens: RerankTokens
    warnings: list[str]


class RerankResponse(BaseModel):
    """Documents, best first; the earlier one first where scores are equal."""

    id: str
    object: Literal["list"] = "list"
    model: str
    results: list[RerankResult]
    usage: RerankUsage
    meta: RerankMeta

    @classmethod
    def of(cls, reranked: Reranked, body: RerankRequest, request_id: str) -> RerankResponse:
        texts, pairs = body.texts, reranked.scored.pairs
        tokens = reranked.scored.phases.tokens
        cut = sum(pair.truncated for pair in pairs)
        return cls(
            id=request_id,
            model=reranked.model,
            results=[
                RerankResult(
                    index=index,
                    relevance_score=pairs[index].score,
                    document=DocumentOut(text=texts[index]) if body.return_documents else None,
                    chunks=pairs[index].chunks,
                    best_chunk=pairs[index].best_chunk,
                    truncated=pairs[index].truncated,
                )
                for index in reranked.best(body.top_n or None)
            ],
            usage=RerankUsage(prompt_tokens=tokens, total_tokens=tokens),
            meta=RerankMeta(
                api_version=ApiVersion(),
                tokens=RerankTokens(input_tokens=tokens),
                warnings=[f"{cut} of {len(pairs)} documents were cut to what the model reads"] if cut else [],
            ),
        )


DESCRIPTION = """\
Scores documents for a query, best first.

The answer is what clients of Cohere (`/v2/rerank`), Jina, infinity and vLLM (`/rerank`) read: all three paths are one.
No query is cut, and no document without saying so: `chunks`, `best_chunk` and `truncated` tell what was read of each.
"""


def add(api: DescribedApi, backend: Backend, limits: Limits) -> None:
    async def rerank(
        body: RerankRequest,
        request: Request,
        response: Response,
        timeout: Timeout = None,  # noqa: ASYNC109 - it travels with the query
    ) -> RerankResponse:
        access = access_of(request)
        access.asked(body.query)
        access.details["documents"] = len(body.documents)
        reranked = await backend.rerank(
            body.query,
            body.texts,
            timeout_s=timeout or limits.default_timeout_s,
            tenant=tenant_of(request),
            long_document=body.long_document,
        )
        tell(reranked.scored.phases, request, response)
        return RerankResponse.of(reranked, body, request_id_of(request))

    for operation, path in PATHS.items():
        api.show(operation, requests={"two documents": _ASKED}, responses={200: {"ranked": _ranked()}})
        api.post(
            path,
            operation_id=operation,
            tags=["models"],
            summary="Rank documents for a query",
            description=DESCRIPTION,
            response_description="The documents, best first.",
            responses={**errors(*POST_ERRORS), 200: {"headers": DESCRIBED}},
        )(rerank)


_ASKED = {
    "query": examples.QUESTION,
    "documents": ["The stock market fell on Tuesday.", examples.PASSAGE.text],
    "top_n": 1,
}


def _ranked() -> RerankResponse:
    scored = Scored((PairScore(0.0121), PairScore(0.8127)), Phases(tokens=118))
    model = "all-MiniLM-L6-v2@1a2b3c4d5e6f"
    return RerankResponse.of(Reranked(scored, model), RerankRequest.model_validate(_ASKED), examples.REQUEST_ID)
