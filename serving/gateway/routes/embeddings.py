"""``POST /v1/embeddings``, in OpenAI's shape."""

from __future__ import annotations

import base64
import struct
from typing import Annotated, Literal

from fastapi import Request, Response
from pydantic import BaseModel, Field

from serving.answer.direct import Embedded
from serving.answer.errors import InvalidRequestError
from serving.answer.types import Phases
from serving.gateway.access import access_of
from serving.gateway.backend import Backend, Limits
from serving.gateway.openapi import POST_ERRORS, DescribedApi, errors
from serving.gateway.phases import DESCRIBED, tell
from serving.gateway.routes.common import Body, Timeout
from serving.gateway.tenant import tenant_of

MAX_TEXTS = 2_048
_UNUSED = "Taken for the sake of OpenAI's clients; changes nothing."

Text = Annotated[str, Field(min_length=1)]


class EmbeddingsRequest(Body):
    input: Annotated[
        Text | Annotated[list[Text], Field(min_length=1, max_length=MAX_TEXTS)],
        Field(description="One or several. Where one is longer than the model reads, its vector is its pieces' mean."),
    ]
    encoding_format: Annotated[
        Literal["float", "base64"], Field(description="`base64`: of little-endian 32-bit floats.")
    ] = "float"
    dimensions: Annotated[int | None, Field(ge=1, description="Refused unless it is what the model has.")] = None
    input_type: Annotated[
        Literal["document", "query"], Field(description="What the texts are, for models that read the two differently.")
    ] = "document"
    model: Annotated[str | None, Field(description=f"{_UNUSED} The response names the model that ran.")] = None
    user: Annotated[str | None, Field(description=_UNUSED)] = None

    @property
    def texts(self) -> list[str]:
        return [self.input] if isinstance(self.input, str) else self.input


class Embedding(BaseModel):
    object: Literal["embedding"] = "embedding"
    index: int
    embedding: list[float] | str


class EmbeddingsUsage(BaseModel):
    prompt_tokens: int
    total_tokens: int


class EmbeddingsResponse(BaseModel):
    """Unit vectors, in the order of the texts."""

    object: Literal["list"] = "list"
    data: list[Embedding]
    model: str
    usage: EmbeddingsUsage

    @classmethod
    def of(cls, embedded: Embedded, encoding: Literal["float", "base64"]) -> EmbeddingsResponse:
        def written(vector: bytes) -> list[float] | str:
            if encoding == "base64":
                return base64.b64encode(vector).decode()
            return list(struct.unpack(f"<{embedded.dimension}f", vector))

        tokens = embedded.phases.tokens
        return cls(
            data=[Embedding(index=index, embedding=written(vector)) for index, vector in enumerate(embedded.vectors)],
            model=embedded.model,
            usage=EmbeddingsUsage(prompt_tokens=tokens, total_tokens=tokens),
        )


def add(api: DescribedApi, backend: Backend, limits: Limits) -> None:
    api.show(
        "embeddings",
        requests={"two texts": {"input": ["A list keeps its order.", "A set does not."]}},
        responses={200: {"vectors": _embedded()}},
    )

    @api.post(
        "/v1/embeddings",
        operation_id="embeddings",
        tags=["models"],
        summary="Embed texts",
        response_description="A vector for each text.",
        responses={**errors(*POST_ERRORS), 200: {"headers": DESCRIBED}},
    )
    async def embeddings(
        body: EmbeddingsRequest,
        request: Request,
        response: Response,
        timeout: Timeout = None,  # noqa: ASYNC109 - it travels with the texts
    ) -> EmbeddingsResponse:
        """Embeds texts as unit vectors, in the shape of OpenAI's API. No text is cut."""
        access_of(request).details["texts"] = len(body.texts)
        embedded = await backend.embed(
            body.texts,
            timeout_s=timeout or limits.default_timeout_s,
            tenant=tenant_of(request),
            query=body.input_type == "query",
        )
        if body.dimensions not in (None, embedded.dimension):
            raise InvalidRequestError(f"dimensions: the model's vectors have {embedded.dimension}; leave the field out")
        tell(embedded.phases, request, response)
        return EmbeddingsResponse.of(embedded, body.encoding_format)


def _embedded() -> EmbeddingsResponse:
    """A model of two dimensions, for show."""
    vectors = (struct.pack("<2f", 0.6, 0.8), struct.pack("<2f", -0.8, 0.6))
    embedded = Embedded(vectors, 2, Phases(tokens=15), "all-MiniLM-L6-v2@1a2b3c4d5e6f")
    return EmbeddingsResponse.of(embedded, "float")
