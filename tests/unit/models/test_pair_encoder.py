import asyncio
import random
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_checkpoints import WINDOW, WORDS, pair_classifier
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from models.collating import collate
from models.encoder import PairEncoder
from models.errors import InputTooLongError, ModelUnusableError
from models.pairs import PairTokenizer
from models.reranker import CrossEncoderReranker
from models.verifier import PairVerifier
from serving.answer.errors import DeadlineExceededError, UnavailableError
from serving.answer.seams import Pair
from serving.answer.types import Deadline, PairScore, Reason

ENTAILMENT = {0: "not_entailment", 1: "entailment"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return pair_classifier(tmp_path_factory.mktemp("pairs"), labels=ENTAILMENT)


@pytest.fixture(scope="module")
def encoder(folder: Path) -> Iterator[PairEncoder]:
    made = PairEncoder(folder, order="document_first", threads=1, batch_tokens=256)
    yield made
    made.close()


def words(count: int, seed: int) -> str:
    return " ".join(random.Random(seed).choices(WORDS, k=count))


def soon() -> Deadline:
    return Deadline.after(60, time.monotonic)


def pairs(count: int) -> list[tuple[str, str]]:
    return [(words(3 + 7 * i % 40, i), words(2 + i % 6, 100 + i)) for i in range(count)]


def test_a_batch_scores_as_its_pairs_alone_and_in_order(encoder: PairEncoder) -> None:
    asked = pairs(30)
    together = encoder.compute(asked)
    alone = [encoder.compute([pair])[0] for pair in asked]
    assert together == pytest.approx(alone, abs=1e-5)
    assert len({round(score, 4) for score in together}) > 20
    assert encoder.compute(asked[::-1]) == pytest.approx(together[::-1], abs=1e-5)


def test_scores_are_those_of_the_plain_model(folder: Path, encoder: PairEncoder) -> None:
    document, claim = "the quick fox runs over the lazy dog", "the fox runs"
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    with torch.inference_mode():
        expected = model(**tokenizer(document, claim, return_tensors="pt")).logits.softmax(-1)[0, 1].item()
    assert encoder.compute([(document, claim)])[0] == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("order", ["document_first", "settled_first"])
def test_the_settled_text_is_never_cut(folder: Path, order: str) -> None:
    encoder = PairEncoder(folder, order=order, threads=1)  # type: ignore[arg-type]
    claim = words(40, 1)
    rows, truncated = encoder._reader.rows(0, words(500, 2), claim)
    assert len(rows) > 10
    assert not truncated
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokens = tokenizer(claim, add_special_tokens=False)["input_ids"]
    separator = tokenizer.sep_token_id
    for row in rows:
        ids = row.tokens["input_ids"]
        assert len(ids) <= WINDOW
        middle = ids.index(separator)
        first, second = ids[1:middle], ids[middle + 1 : -1]
        assert (second if order == "document_first" else first) == tokens
    encoder.close()


def test_a_long_document_scores_as_its_best_piece(encoder: PairEncoder) -> None:
    document, claim = ". ".join(words(12, seed) for seed in range(20)) + ".", words(5, 7)
    pieces = encoder.pieces(document, claim)
    assert len(pieces) > 3
    assert encoder.compute([(document, claim)])[0] == pytest.approx(
        max(encoder.compute([(piece, claim) for piece in pieces])), abs=1e-5
    )


def test_a_claim_that_leaves_no_room_is_refused(encoder: PairEncoder) -> None:
    with pytest.raises(InputTooLongError, match="make it shorter") as caught:
        encoder.compute([("the fox", words(WINDOW, 1))])
    assert caught.value.status == 422


def test_hard_strings_are_scored(encoder: PairEncoder) -> None:
    hard = ["", "\0", "\ud800", "\ud83d\ude00", "a\0b", " \n", "日本" * 200, "x" * 5000, "[SEP] [CLS]"]
    scores = encoder.compute([(document, "the fox") for document in hard] + [("the fox", claim) for claim in hard[:6]])
    assert all(0.0 <= score <= 1.0 for score in scores)


def test_a_separator_in_a_text_separates_nothing(folder: Path, encoder: PairEncoder) -> None:
    [row], _ = encoder._reader.rows(0, "the fox [SEP] [CLS] the dog", "a moon [SEP] a sun")
    ids, tokenizer = row.tokens["input_ids"], AutoTokenizer.from_pretrained(folder)
    assert ids.count(tokenizer.sep_token_id) == 2
    assert ids.count(tokenizer.cls_token_id) == 1


TYPED = ["input_ids", "token_type_ids", "attention_mask"]


@pytest.mark.parametrize("names", [TYPED, ["input_ids", "attention_mask"]])
@pytest.mark.parametrize("order", ["document_first", "settled_first"])
def test_rows_are_those_of_the_library(folder: Path, order: str, names: list[str]) -> None:
    tokenizer = AutoTokenizer.from_pretrained(folder, model_input_names=names)
    mine = PairTokenizer(tokenizer, order=order, max_tokens=WINDOW)  # type: ignore[arg-type]
    for document, settled in pairs(10):
        [row], _ = mine.rows(3, document, settled)
        asked = (document, settled) if order == "document_first" else (settled, document)
        theirs = tokenizer(*asked, split_special_tokens=True)
        assert row.pair == 3
        assert row.tokens == {name: theirs[name] for name in names if name != "attention_mask"}


def test_a_model_may_read_more_beside_the_tokens(folder: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(folder)
    sided = PairTokenizer(
        tokenizer,
        order="settled_first",
        max_tokens=WINDOW,
        beside=lambda _tokens, sides: {"sides": [4 if side is None else side for side in sides]},
    )
    [row], _ = sided.rows(0, "a fox runs", "the dog", head=2)
    assert row.tokens["sides"] == [4, 0, 0, 4, 1, 1, 1, 4]
    assert row.head == 2


@pytest.mark.parametrize("side", ["right", "left"])
def test_padding_is_that_of_the_library(folder: Path, side: str) -> None:
    tokenizer = AutoTokenizer.from_pretrained(folder, padding_side=side, model_input_names=TYPED)
    rows = [dict(tokenizer(document, settled, return_attention_mask=False)) for document, settled in pairs(7)]
    fillers = {"input_ids": tokenizer.pad_token_id, "token_type_ids": tokenizer.pad_token_type_id}
    mine = collate(rows, padding=fillers, side=side)  # type: ignore[arg-type]
    theirs = tokenizer.pad(rows, padding=True, return_tensors="pt")
    assert set(mine) == set(theirs)
    assert all(torch.equal(mine[name], theirs[name]) for name in mine)


@settings(max_examples=30)
@given(st.text(max_size=300), st.text(max_size=8))
def test_any_text_is_scored(encoder: PairEncoder, document: str, claim: str) -> None:
    assert 0.0 <= encoder.compute([(document, claim)])[0] <= 1.0


@pytest.mark.parametrize(
    ("labels", "positive"),
    [
        ({0: "LABEL_0", 1: "LABEL_1"}, 1),
        ({0: "entailment", 1: "not_entailment"}, 0),
        ({0: "contradiction", 1: "ENTAILMENT", 2: "neutral"}, 1),
        ({0: "a", 1: "b", 2: "c"}, 2),
    ],
)
def test_the_positive_label_is_found_by_name(tmp_path: Path, labels: dict[int, str], positive: int) -> None:
    encoder = PairEncoder(pair_classifier(tmp_path, labels=labels), order="document_first", threads=1)
    model = AutoModelForSequenceClassification.from_pretrained(tmp_path).eval()
    tokens = AutoTokenizer.from_pretrained(tmp_path)("the fox", "a dog", return_tensors="pt")
    with torch.inference_mode():
        expected = model(**tokens).logits.softmax(-1)[0, positive].item()
    assert encoder.compute([("the fox", "a dog")])[0] == pytest.approx(expected, abs=1e-5)
    encoder.close()


async def test_one_label_is_a_sigmoid_and_the_query_comes_first(tmp_path: Path) -> None:
    folder = pair_classifier(tmp_path, labels={0: "relevant"})
    reranker = CrossEncoderReranker(PairEncoder(folder, order="settled_first", threads=1))
    await reranker.warm_up()
    documents = [words(n, n) for n in (4, 30, 9)]
    scores = await reranker.score("the quick fox", documents, deadline=soon())
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    with torch.inference_mode():
        for score, document in zip(scores, documents, strict=True):
            logits = model(**tokenizer("the quick fox", document, return_tensors="pt")).logits
            assert score == pytest.approx(torch.sigmoid(logits)[0, 0].item(), abs=1e-5)
    assert await reranker.score("the fox", [], deadline=soon()) == []
    reranker.close()


async def test_the_threshold_decides_the_verdict(folder: Path) -> None:
    encoder = PairEncoder(folder, order="document_first", threads=1)
    asked = [Pair(document, claim) for document, claim in pairs(12)]
    scores = sorted(verdict.score for verdict in await PairVerifier(encoder).verify(asked, deadline=soon()))
    verdicts = await PairVerifier(encoder, threshold=scores[6]).verify(asked, deadline=soon())
    assert [v.reason for v in verdicts] == [
        Reason.ENTAILED if v.score >= scores[6] else Reason.NOT_ENTAILED for v in verdicts
    ]
    assert sum(v.reason is Reason.ENTAILED for v in verdicts) == 6
    assert await PairVerifier(encoder).verify([], deadline=soon()) == []
    with pytest.raises(ValueError, match="between 0 and 1"):
        PairVerifier(encoder, threshold=1.5)
    encoder.close()
    with pytest.raises(UnavailableError, match="closed"):
        await PairVerifier(encoder).verify(asked, deadline=soon())


async def test_a_deadline_that_has_passed_starts_nothing(encoder: PairEncoder) -> None:
    with pytest.raises(DeadlineExceededError):
        await encoder.score([("the fox", "a fox")], deadline=Deadline.after(0, time.monotonic))


async def test_a_cancelled_call_stops_between_batches(encoder: PairEncoder) -> None:
    task = asyncio.create_task(encoder.score([(words(50, i), "the fox") for i in range(3000)], deadline=soon()))
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    began = time.monotonic()
    await encoder.score([("the fox", "a fox")], deadline=soon())
    assert time.monotonic() - began < 10


async def test_after_a_caller_leaves_no_pass_begins_for_it(folder: Path) -> None:
    encoder = PairEncoder(folder, order="document_first", threads=1, batch_tokens=128)
    began, forward = [0], encoder._runtime._forward

    def counted(rows: list[Any]) -> Sequence[float]:
        began[0] += 1
        return forward(rows)

    encoder._runtime._forward = counted
    task = asyncio.create_task(encoder.score([(words(50, i), "the fox") for i in range(400)], deadline=soon()))
    while began[0] < 5:  # noqa: ASYNC110 - a thread counts
        await asyncio.sleep(0.001)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    at_leaving = began[0]
    await encoder.score([("the fox", "a fox")], deadline=soon())
    assert began[0] <= at_leaving + 2  # one that was about to begin, and ours
    encoder.close()


def test_what_is_no_classifier_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ModelUnusableError, match="pair classifier"):
        PairEncoder(tmp_path, order="document_first", threads=1)


# What was read of a document


async def test_what_was_read_of_a_document_is_told(encoder: PairEncoder) -> None:
    claim, document = words(5, 7), ". ".join(words(12, seed) for seed in range(20)) + "."
    pieces = encoder.pieces(document, claim)
    alone = encoder.compute([(piece, claim) for piece in pieces])
    scored = await encoder.read([("the fox", claim), (document, claim), ("", claim)], deadline=soon())
    short, long, empty = scored.pairs
    assert (short.chunks, short.best_chunk, short.truncated) == (1, 0, False)
    assert (long.chunks, long.truncated) == (len(pieces), False)
    assert long.best_chunk == alone.index(max(alone))
    assert empty == PairScore(0.0, chunks=0, best_chunk=None)
    assert scored.phases.tokens > 240
    assert scored.phases.padded_tokens >= scored.phases.tokens
    assert scored.phases.total_s >= scored.phases.tokenise_s + scored.phases.compute_s


async def test_a_document_is_cut_or_refused_where_that_is_asked_for(encoder: PairEncoder) -> None:
    claim, document = words(5, 7), ". ".join(words(12, seed) for seed in range(20)) + "."
    [first] = (await encoder.read([(document, claim)], long_document="truncate")).pairs
    assert (first.chunks, first.best_chunk, first.truncated) == (1, 0, True)
    assert first.score == pytest.approx(encoder.compute([(encoder.pieces(document, claim)[0], claim)])[0], abs=1e-5)
    with pytest.raises(InputTooLongError, match="long_document"):
        await encoder.read([(document, claim)], long_document="error")


async def test_a_text_that_says_nothing_scores_nothing(encoder: PairEncoder) -> None:
    nothing = ["", "  \n", "\0"]
    scored = await encoder.read([(text, "the fox") for text in nothing] + [("the fox", text) for text in nothing])
    assert scored.pairs == (PairScore(0.0, chunks=0, best_chunk=None),) * 6
    assert scored.phases.padded_tokens == 0


async def test_concurrent_calls_share_passes(folder: Path) -> None:
    encoder = PairEncoder(folder, order="document_first", threads=1, batch_tokens=4096)
    asked = pairs(40)
    alone = encoder.compute(asked)
    scores = await asyncio.gather(*(encoder.score([pair]) for pair in asked))
    assert [score for [score] in scores] == pytest.approx(alone, abs=1e-5)
    totals = encoder._runtime.totals
    assert totals.rows == 40
    assert totals.passes < 20
    encoder.health()
    encoder.close()


def test_a_model_in_half_precision_has_an_exact_head(folder: Path, encoder: PairEncoder) -> None:
    half = PairEncoder(folder, order="document_first", threads=1, dtype="bfloat16")
    assert next(half._model.bert.parameters()).dtype is torch.bfloat16
    scores = half.compute(pairs(30))
    assert scores == pytest.approx(encoder.compute(pairs(30)), abs=0.15)
    assert len(set(scores)) == 30
    coarse = torch.tensor(scores).to(torch.bfloat16).float().tolist()
    assert sum(score == rounded for score, rounded in zip(scores, coarse, strict=True)) < 10
    half.close()
