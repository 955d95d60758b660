"""The Verifier deployment: a pair classifier, a model that writes its verdict on an engine of its own, or the overlap
reference where none is configured.

The relevance judge is served here too: it reads short pairs, and where it is a head of the verifier's encoder it takes
no memory of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

from ray import serve

from models.catalog import Catalog
from serving.answer.errors import UnavailableError
from serving.answer.reference import OverlapVerifier
from serving.answer.seams import Pair, Verifier
from serving.answer.sentences import split
from serving.answer.types import Deadline, PairScore, Phases, Scored, Verdict
from serving.deployments.base import WARM_UP_S, EncoderDeployment, Held, deadline_in, encoder_name, pair_options
from serving.settings import Settings

if TYPE_CHECKING:
    from models.encoder import PairEncoder
    from models.generative_verifier import GenerativeVerifier
    from models.vllm_options import VllmOptions


_CPU_CACHE_GIB = 0.5


@runtime_checkable
class ReadsPairs(Protocol):
    """A verifier that can say what it read of each premise."""

    async def read(self, pairs: Sequence[Pair], *, deadline: Deadline) -> tuple[list[Verdict], Scored]: ...

    async def warm_up(self) -> None: ...


class Judges(NamedTuple):
    """A verifier, the name that answers carry for it, the relevance judge beside it, and all models of both."""

    verifier: Verifier
    name: str
    relevance: PairEncoder | None
    encoders: tuple[Held, ...]

    def health(self) -> None:
        for encoder in self.encoders:
            encoder.health()

    def close(self) -> None:
        for encoder in self.encoders:
            encoder.close()


def made(settings: Settings, reference: str | None, writing: GenerativeVerifier | None = None) -> Judges:
    """The verifier whose weights ``reference`` names, or the overlap reference without one, and the relevance judge.

    ``writing`` is that verifier where it is one that had to be started on the event loop. Blocks. Raises
    :class:`~models.errors.ModelError`.
    """
    chosen, judge = settings.models.verifier, settings.models.relevance
    encoders: list[Held] = []
    encoder: PairEncoder | None = None
    verifier: Verifier = OverlapVerifier(chosen.floor)
    name = f"overlap@{chosen.floor:g}"
    if reference is not None and writing is not None:
        verifier, encoders = writing, [writing]
        name = encoder_name(reference, Catalog(settings.home).locate(reference), writing.name)
    elif reference is not None:
        # The overlap reference needs no torch: it is loaded only for a model.
        from models.verifier import PairVerifier

        encoder = _encoder(settings, reference)
        verifier, encoders = PairVerifier(encoder, threshold=chosen.floor), [encoder]
        name = encoder_name(reference, Catalog(settings.home).locate(reference), encoder.name)
    relevance: PairEncoder | None = None
    if judge.kind == "pair":
        if encoder is not None and judge.model == chosen.model:
            relevance = encoder.beside("relevance")
        if relevance is None:
            relevance = _judge(settings, str(judge.model))
            encoders.append(relevance)
    return Judges(verifier, name, relevance, tuple(encoders))


@serve.deployment(name="Verifier")
class VerifierDeployment(EncoderDeployment[Judges]):
    """Without a reference to a pair classifier it counts words, as the overlap reference does."""

    async def __init__(self, settings: Settings) -> None:  # type: ignore[misc]  # Serve awaits it
        super().__init__()
        self._settings = settings
        chosen = settings.models.verifier
        await self._begin(chosen.model if chosen.kind == "pair" else None)

    async def _ready(self, reference: str | None) -> Judges:
        """The judges, once they have answered."""
        writing = None
        if reference is not None and self._settings.models.verifier.family == "bespoke_minicheck":
            writing = await started(self._settings, reference)
        try:
            new = await asyncio.to_thread(made, self._settings, reference, writing)
        except BaseException:
            if writing is not None:
                writing.close()
            raise
        if isinstance(new.verifier, ReadsPairs):
            await new.verifier.warm_up()
        deadline = deadline_in(WARM_UP_S)
        await new.verifier.verify([Pair("A text.", "A claim.")], deadline=deadline)
        if new.relevance is not None:
            await new.relevance.score([("A text.", "A question?")], deadline=deadline)
        return new

    async def verify(self, pairs: list[Pair], *, timeout_s: float) -> list[Verdict]:
        return (await self.read(pairs, timeout_s=timeout_s))[0]

    async def read(self, pairs: list[Pair], *, timeout_s: float) -> tuple[list[Verdict], Scored]:
        """The verdicts, with what was read of each premise and where the time went."""
        self._count()
        deadline = deadline_in(timeout_s)
        async with self._current.use() as current:
            verdicts, scored = await _read(current.verifier, pairs, deadline)
        self._measured(scored.phases)
        named = [replace(verdict, version=current.name) for verdict in verdicts]
        return named, replace(scored, version=current.name)

    async def relevance(self, pairs: list[tuple[str, str]], *, timeout_s: float) -> list[float]:
        """How well each statement answers the question beside it, in [0, 1]."""
        async with self._current.use() as current:
            if current.relevance is None:
                raise UnavailableError("models.relevance.kind is rare_words: no relevance judge is loaded here")
            return await current.relevance.score(pairs, deadline=deadline_in(timeout_s))


async def _read(verifier: Verifier, pairs: Sequence[Pair], deadline: Deadline) -> tuple[list[Verdict], Scored]:
    if isinstance(verifier, ReadsPairs):
        return await verifier.read(pairs, deadline=deadline)
    verdicts = list(await verifier.verify(pairs, deadline=deadline))
    return verdicts, Scored(tuple(PairScore(verdict.score) for verdict in verdicts), Phases())


async def started(settings: Settings, reference: str) -> GenerativeVerifier:
    """The verifier that writes its verdict, on an engine of its own. Raises :class:`~models.errors.ModelError`."""
    from models.generative_verifier import GenerativeVerifier

    options = await asyncio.to_thread(engine_options, settings, reference)
    chosen = settings.models.verifier
    return await GenerativeVerifier.start(
        options, sentences=split, threshold=chosen.floor, long_document=chosen.long_document
    )


def engine_options(settings: Settings, reference: str) -> VllmOptions:
    """What the engine of a verifier that writes is started with: the share of the GPU that its deployment reserves.

    Blocks. Raises :class:`~models.errors.ModelError` when there is no such model, or it is none that writes.
    """
    from models.bespoke import WINDOW
    from models.families import described, resolve
    from models.vllm_options import VllmOptions

    chosen = settings.models.verifier
    folder = Catalog(settings.home).locate(reference)
    config = described(folder)
    resolve(chosen.family, config, folder.name)
    share = chosen.gpu_memory_share or settings.deployments.verifier.num_gpus
    on_gpu = chosen.device == "cuda"
    return VllmOptions(
        model=folder,
        dtype=chosen.dtype,
        max_model_len=min(chosen.max_tokens or WINDOW, int(config.get("max_position_embeddings") or WINDOW)),
        kv_cache_gib=None if on_gpu else _CPU_CACHE_GIB,  # None: what its share leaves
        gpu_memory_utilization=share or 0.3,
        max_num_seqs=64 if on_gpu else 8,
        threads=chosen.threads,
        patience_s=chosen.patience_s,
    )


def _encoder(settings: Settings, reference: str) -> PairEncoder:
    from models.family_encoder import open_verifier

    catalog, chosen = Catalog(settings.home), settings.models.verifier
    folder = catalog.locate(reference)
    return open_verifier(
        folder,
        family=chosen.family,
        base=catalog.base_of(folder),
        long_document=chosen.long_document,
        **pair_options(settings, chosen, settings.deployments.verifier),
    )


def _judge(settings: Settings, reference: str) -> PairEncoder:
    from models.head_encoder import open_pairs

    catalog = Catalog(settings.home)
    folder = catalog.locate(reference)
    return open_pairs(
        folder,
        order="settled_first",
        head="relevance",
        base=catalog.base_of(folder),
        long_document=settings.models.verifier.long_document,
        **pair_options(settings, settings.models.relevance, settings.deployments.verifier),
    )
