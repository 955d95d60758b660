"""Pair classification with any ``AutoModelForSequenceClassification``: what reranker and verifier are made of.

A pair is a document and a settled text (a query or a claim). The settled text is never cut. A document that does not
fit the window beside it is split into pieces, and the pair's score is that of its best piece.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from models.batcher.work import Totals
from models.batching import batches
from models.best_pieces import Read, RowScore, best
from models.checkpoints import counting_labels, window
from models.collating import collate
from models.cpu import Dtype, cpu_flags, resolve_dtype
from models.device import choose, yielding
from models.documents import LongDocument
from models.errors import ModelUnusableError
from models.fingerprint import fingerprint
from models.pairs import Beside, Order, PairRow, PairTokenizer
from models.precision import keep_head_exact
from models.runtime import Check, EncoderRuntime, Launch
from models.transfer import transfer
from serving.answer.types import Deadline, PairScore, Scored

_BATCH_TOKENS = {"cpu": 2048, "cuda": 16384}  # a CPU is fastest with what stays in its caches
Backend = Literal["torch", "openvino"]


class PairEncoder:
    """Scores pairs in [0, 1]: sigmoid for one label, else the softmax share of the positive one.

    The positive label is the one named ``entail...`` in the model's ``id2label``, else the last; of three labels or
    more one named ``contradict...`` is told beside it, at its highest over a document's pieces. ``order`` is how the
    model was trained: rerankers read the query first, grounding checkers the document. ``max_tokens`` narrows the
    model's window; ``batch_tokens`` bounds rows times the longest row of a pass; ``threads`` is the width of an
    operation on a CPU; ``memory_share`` bounds what this process takes of a GPU's memory; ``dtype`` is that of the
    model's body, while its head and what comes of it are float32; ``long_document`` says what becomes of a document
    that does not fit. After ``patience_s`` seconds of work and no finished pass, :meth:`health` fails. ``backend`` is
    what computes the model's body, on a CPU alone where it is not torch; ``home`` is where what it prepares is kept.

    Pairs of concurrent calls share passes. A pair without a token on either side scores 0 and is in none.
    """

    def __init__(
        self,
        folder: Path,
        *,
        order: Order,
        threads: int,
        max_tokens: int | None = None,
        batch_tokens: int | None = None,
        device: str | None = None,
        memory_share: float | None = None,
        dtype: Dtype = "float32",
        long_document: LongDocument = "chunk_max",
        patience_s: float = 60.0,
        backend: Backend = "torch",
        home: Path | None = None,
    ) -> None:
        self.name = f"{folder.name}@{fingerprint(folder)}"
        self._long_document = long_document
        self._device = choose(device, memory_share)
        self._batch_tokens = batch_tokens or _BATCH_TOKENS.get(self._device.type, 8192)
        body_dtype = resolve_dtype(dtype, flags=cpu_flags() if self._device.type == "cpu" else None)
        self._dtype = body_dtype if backend == "torch" else "float32"  # of what torch computes
        try:
            self._tokenizer: Any = AutoTokenizer.from_pretrained(self._reads_as(folder), local_files_only=True)
        except (OSError, ValueError) as error:
            raise ModelUnusableError(f"{folder} does not load as a pair classifier: {error}") from error
        if not self._tokenizer.is_fast:
            raise ModelUnusableError(
                f"{folder} has no fast tokenizer, which splitting needs: save tokenizer.json there."
            )
        if self._tokenizer.pad_token_id is None:
            raise ModelUnusableError(f"{folder} has no padding token, which batches need: name one in its tokenizer.")
        self.max_tokens = min(limit for limit in (self._load(folder), max_tokens) if limit)
        self._reader = self._reading(order)
        self._padding = {"input_ids": self._tokenizer.pad_token_id, **self._fillers}
        if "token_type_ids" in self._tokenizer.model_input_names:
            self._padding["token_type_ids"] = self._tokenizer.pad_token_type_id
        self._transfer = transfer(self._device)
        if backend == "openvino":
            self._move_body(folder, body_dtype, threads, home)
        self._runtime = EncoderRuntime[PairRow, RowScore](
            folder.name,
            self._forward,
            threads=threads,
            budget=self._batch_tokens,
            patience_s=patience_s,
            stage=self._stage if self._transfer.overlaps else None,
        )

    async def score(self, pairs: Sequence[tuple[str, str]], *, deadline: Deadline | None = None) -> list[float]:
        """One score for each (document, settled text), in order; raises as :meth:`read`."""
        return [pair.score for pair in (await self.read(pairs, deadline=deadline)).pairs]

    async def read(
        self,
        pairs: Sequence[tuple[str, str]],
        *,
        deadline: Deadline | None = None,
        long_document: LongDocument | None = None,
    ) -> Scored:
        """:meth:`score` with what was read of each document, and the time it took. ``long_document``: the encoder's.

        Raises :class:`~models.errors.InputTooLongError` when a settled text leaves no room for a document, or a
        document does not fit and is to be refused; :class:`~serving.answer.errors.DeadlineExceededError`,
        :class:`~serving.answer.errors.UnavailableError`.
        """
        mode = long_document or self._long_document

        def tokenise(check: Check) -> tuple[list[PairRow], list[Read]]:
            return self._read_all(pairs, mode, check)

        done, read = await self._runtime.run(tokenise, deadline=deadline)
        return Scored(self._settled(pairs, best(done.results, read)), done.phases)

    def compute(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """:meth:`score` on the calling thread, in passes of its own."""
        rows, read = self._read_all(pairs, self._long_document, _always_wanted)
        scores = [RowScore(0.0)] * len(rows)
        for batch in batches([row.length for row in rows], self._batch_tokens):
            for index, score in zip(batch, self._forward([rows[i] for i in batch]), strict=True):
                scores[index] = score
        return [pair.score for pair in self._settled(pairs, best(scores, read))]

    def pieces(self, document: str, settled: str) -> list[str]:
        """The pieces of ``document`` that are read beside ``settled``: itself when it fits."""
        return list(self._reader.pieces(document, settled, self._long_document).texts)

    def beside(self, head: str) -> PairEncoder | None:
        """An encoder for another head of the same weights, on the same threads; None where there are no heads."""
        del head
        return None

    async def warm_up(self) -> None:
        """Runs rows of the full window, as many as a pass takes, so that the first real one finds all allocated."""
        rows = max(1, self._batch_tokens // self.max_tokens)
        await self.score([("word " * self.max_tokens, "word")] * rows)

    @property
    def totals(self) -> Totals:
        """What all passes held, with and without padding."""
        return self._runtime.totals

    def health(self) -> None:
        """Raises :class:`~serving.answer.errors.UnavailableError` when there is work and nothing comes of it."""
        self._runtime.health()

    def close(self) -> None:
        self._runtime.close()

    # What an encoder of another kind of model says for itself

    _head = 0
    """The head that this one's rows are for. All that share a runtime share its passes: they must go by the rows'."""
    _beside: Beside | None = None
    """What its model reads beside the tokens of a row."""
    _fillers: Mapping[str, int] = MappingProxyType({})
    """What fills up each of those in a shorter row."""

    exclusive = False
    """Whether a score must be above a threshold to pass it, or may be at it."""

    def _reading(self, order: Order) -> PairTokenizer:
        """What makes rows of pairs."""
        return PairTokenizer(self._tokenizer, order=order, max_tokens=self.max_tokens, beside=self._beside)

    def _reads_as(self, folder: Path) -> Path:
        """Where the tokenizer is."""
        return folder

    def _load(self, folder: Path) -> int:
        """Loads the model, and returns its window in tokens."""
        try:
            model: Any = AutoModelForSequenceClassification.from_pretrained(
                folder, local_files_only=True, use_safetensors=True, dtype=self._dtype
            )
        except (OSError, ValueError) as error:
            raise ModelUnusableError(f"{folder} does not load as a pair classifier: {error}") from error
        self._model = keep_head_exact(model.eval().to(self._device))
        self._positive, self._contradiction = counting_labels(self._model.config)
        return window(self._model.config, self._tokenizer)

    def _move_body(self, folder: Path, dtype: str, threads: int, home: Path | None) -> None:
        """Has OpenVINO compute the model's body from now on. Raises as :func:`models.backends.openvino.moved`."""
        from models.backends import openvino  # noqa: PLC0415 - for who chooses it alone

        if home is None or self._device.type != "cpu":
            raise ValueError("The backend openvino computes on a CPU, and keeps what it prepares in a home: give both.")
        # Of different lengths, so that its mask is seen to matter.
        sample, _ = self._read_all([("word", "word"), ("word " * 9, "word")], "truncate", _always_wanted)
        body = getattr(self._model, self._body, None)
        if body is None:
            raise ModelUnusableError(f"{folder.name} has no layers that OpenVINO could compute: set backend to torch.")

        def move() -> Any:
            return openvino.moved(
                body,
                lambda: self._forward(sample),
                home=home,
                name=folder.name,
                version=fingerprint(folder),
                dtype=dtype,
                threads=threads,
            )

        setattr(self._model, self._body, yielding(move))  # OpenVINO's threads are those it starts now

    @property
    def _body(self) -> str:
        """What the model calls its layers."""
        return str(self._model.base_model_prefix)

    def _settled(self, pairs: Sequence[tuple[str, str]], best: tuple[PairScore, ...]) -> tuple[PairScore, ...]:
        """The scores of pairs from those of their best pieces; a pair that was not read (no chunk) stays at 0."""
        del pairs
        return best

    def _read_all(
        self, pairs: Sequence[tuple[str, str]], mode: LongDocument, check: Check
    ) -> tuple[list[PairRow], list[Read]]:
        rows: list[PairRow] = []
        read: list[Read] = []
        for number, (document, settled) in enumerate(pairs):
            check()
            of_pair, truncated = self._reader.rows(number, document, settled, mode, head=self._head)
            rows += of_pair
            read.append(Read(len(of_pair), truncated))
        return rows, read

    def _inputs(self, rows: list[PairRow]) -> dict[str, torch.Tensor]:
        """What the model reads of ``rows``, in the CPU's memory."""
        return collate([row.tokens for row in rows], padding=self._padding, side=self._tokenizer.padding_side)

    def _scores(self, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        """The fields of each row's :class:`RowScore`, float32, of shape (rows, 1 or 2), where the model is."""
        logits = self._model(**inputs).logits.float()
        if logits.shape[1] == 1:
            return torch.sigmoid(logits)
        columns = [self._positive] if self._contradiction is None else [self._positive, self._contradiction]
        chances: torch.Tensor = logits.softmax(-1)[:, columns]
        return chances

    # A pass

    def _forward(self, rows: list[PairRow]) -> Sequence[RowScore]:
        return self._stage(rows)()()

    def _stage(self, rows: list[PairRow]) -> Launch[RowScore]:
        staged = self._transfer.stage(self._inputs(rows))

        def launch() -> Callable[[], list[RowScore]]:
            with torch.inference_mode():
                fetch = self._transfer.fetch(self._scores(staged()))
            return lambda: [RowScore(*fields) for fields in fetch()]

        return launch


def _always_wanted() -> None:
    """The check of a call that nobody can leave."""
