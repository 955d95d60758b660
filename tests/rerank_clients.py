"""Other people's clients, pointed at a server of ours."""

from __future__ import annotations

import cohere
import openai

DOCUMENTS = [
    "The stock market fell on Tuesday.",
    "chain(*iterables) returns elements from the first iterable until it is exhausted, then from the next.",
    "A cake needs flour.",
]
QUERY = "How do I chain iterables?"


def rerank_with_cohere(url: str) -> cohere.V2RerankResponse:
    client = cohere.ClientV2(api_key="a-key", base_url=url, timeout=120)
    return client.rerank(model="rerank-v3.5", query=QUERY, documents=DOCUMENTS, top_n=2)


def embed_with_openai(url: str, texts: list[str]) -> openai.types.CreateEmbeddingResponse:
    """The client asks for base64, and decodes it."""
    client = openai.OpenAI(api_key="a-key", base_url=f"{url}/v1", timeout=120, max_retries=0)
    return client.embeddings.create(model="text-embedding-3-small", input=texts)
