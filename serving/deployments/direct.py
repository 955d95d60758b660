"""Models that are called on their own: each call inside a permit of kind ``direct``, sized before any work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager

from ray.serve.handle import DeploymentHandle

from serving.answer.checking import check_text
from serving.answer.direct import CheckedText, Embedded, Reranked, ceiling, pairs_ceiling
from serving.answer.gate import Gate, Kind, Permit
from serving.answer.seams import Pair
from serving.answer.types import Deadline, Passage, Phases, Verdict
from serving.deployments.handles import RemoteEmbedder, RemoteReranker, RemoteVerifier, translate


class DirectCalls:
    """Rerank, check and embed over the deployments' handles. ``tenant`` is whose share of the budget a call takes.

    Its methods raise :class:`~serving.answer.errors.OverloadedError` when there is no permit, and what models raise.
    """

    def __init__(self, handles: Mapping[str, DeploymentHandle], gate: Gate, *, wait_s: float) -> None:
        self._handles = handles
        self._gate = gate
        self._wait_s = wait_s
        self._reranker = RemoteReranker(handles["reranker"])
        self._verifier = RemoteVerifier(handles["verifier"])
        self._embedder = RemoteEmbedder(handles["embedder"])
        self._embedder_name = ""  # asked once: it is never replaced, as the others may be

    async def rerank(
        self,
        query: str,
        documents: Sequence[str],
        *,
        long_document: str | None,
        tenant: str | None,
        deadline: Deadline,
    ) -> Reranked:
        async with self._permit(pairs_ceiling(documents, [query]), tenant, deadline) as permit:
            scored = await self._reranker.read(query, documents, deadline=deadline, long_document=long_document)
            permit.settle(scored.phases.tokens)
            return Reranked(scored, scored.version or await self._name("reranker"))

    async def check(
        self, text: str, facts: Sequence[Passage], *, floor: float, tenant: str | None, deadline: Deadline
    ) -> CheckedText:
        # A sentence is read beside each fact alone, and beside all of them when none proves it alone.
        sentences = max(1, sum(text.count(end) for end in ".!?\n。"))
        tokens = 2 * (sentences * ceiling(fact.text for fact in facts) + (len(facts) + 1) * ceiling([text]))
        async with self._permit(tokens, tenant, deadline) as permit:
            verifier = _Measured(self._verifier)
            checked = await check_text(text, facts, verifier=verifier, floor=floor, deadline=deadline)
            permit.settle(verifier.phases.tokens)
            return CheckedText(
                checked.claims,
                checked.pairs,
                chunks=verifier.chunks,
                truncated=verifier.truncated,
                phases=verifier.phases,
                model=verifier.version or await self._name("verifier"),
            )

    async def embed(self, texts: Sequence[str], *, query: bool, tenant: str | None, deadline: Deadline) -> Embedded:
        async with self._permit(ceiling(texts), tenant, deadline) as permit:
            vectors, phases = await self._embedder.measured(texts, deadline=deadline, query=query)
            permit.settle(phases.tokens)
            rows = tuple(vector.astype("<f4").tobytes() for vector in vectors)
            self._embedder_name = self._embedder_name or await self._name("embedder")
            return Embedded(rows, int(vectors.shape[1]), phases, self._embedder_name)

    def _permit(self, tokens: int, tenant: str | None, deadline: Deadline) -> AbstractAsyncContextManager[Permit]:
        wait_s = min(self._wait_s, deadline.remaining())
        return self._gate.permit(Kind.DIRECT, tokens=tokens, wait_s=wait_s, tenant=tenant)

    async def _name(self, part: str) -> str:
        """What names the weights of a part now."""
        try:
            name: str = await self._handles[part].name.remote()
        except Exception as error:
            raise translate(error, part) from error
        return name


class _Measured:
    """The seam :class:`~serving.answer.seams.Verifier`, which remembers what its calls took and read."""

    def __init__(self, verifier: RemoteVerifier) -> None:
        self._verifier = verifier
        self.phases = Phases()
        self.chunks = 0
        self.truncated = False
        self.version = ""

    async def verify(self, pairs: Sequence[Pair], *, deadline: Deadline) -> list[Verdict]:
        verdicts, scored = await self._verifier.read(pairs, deadline=deadline)
        self.phases += scored.phases
        self.version = scored.version or self.version
        self.chunks += sum(pair.chunks for pair in scored.pairs)
        self.truncated = self.truncated or any(pair.truncated for pair in scored.pairs)
        return verdicts
