"""Each family against a plain computation with the library: one pair at a time, the authors' own string."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
import torch
from family_checkpoints import deberta, flan_t5, roberta, sentences, words
from tiny_checkpoints import pair_classifier
from transformers import AutoModelForSeq2SeqLM, AutoModelForSequenceClassification, AutoTokenizer

from models.encoder import PairEncoder
from models.errors import InputTooLongError, ModelUnusableError
from models.families import LAYOUTS, Family, Layout, resolve
from models.family_encoder import open_verifier
from models.verifier import PairVerifier
from serving.answer.seams import Pair
from serving.answer.types import Deadline, Reason

Text = Callable[[str, str], str]
Case = tuple[Family, Callable[[Path], Path], Text, int]

CASES: list[Case] = [
    ("minicheck_roberta", roberta, lambda document, claim: document + "</s>" + claim, 2),
    ("minicheck_deberta", deberta, lambda document, claim: document + "[SEP]" + claim, 2),
    ("minicheck_flan_t5", flan_t5, lambda document, claim: "predict: " + document + "</s>" + claim, 2),
    (
        "factcg",
        deberta,
        lambda document, claim: (
            f'{document}\n\nChoose your answer: based on the paragraph above can we conclude that "{claim}"?'
            "\n\nOPTIONS:\n- Yes\n- No\nI think the answer is "
        ),
        1,
    ),
]


class Plain:
    """The library's own way with one pair: the whole string through the tokenizer, one row through the model."""

    def __init__(self, folder: Path, family: str, text: Text) -> None:
        self.tokenizer: Any = AutoTokenizer.from_pretrained(folder)
        self._seq2seq = family == "minicheck_flan_t5"
        kind: Any = AutoModelForSeq2SeqLM if self._seq2seq else AutoModelForSequenceClassification
        self._model = kind.from_pretrained(folder).eval()
        self._text = text

    def ids(self, document: str, claim: str) -> list[int]:
        ids: list[int] = self.tokenizer(self._text(document, claim))["input_ids"]
        return ids

    @torch.inference_mode()
    def score(self, document: str, claim: str) -> float:
        inputs = self.tokenizer(self._text(document, claim), return_tensors="pt")
        if not self._seq2seq:
            return float(self._model(**inputs).logits.softmax(-1)[0, 1])
        logits = self._model(
            input_ids=inputs["input_ids"], decoder_input_ids=torch.zeros((1, 1), dtype=torch.long)
        ).logits
        return float(torch.softmax(logits[0, 0, torch.tensor([3, 209])], dim=0)[1])


@pytest.fixture(scope="module", params=CASES, ids=lambda case: case[0])
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, ...]]:
    family, build, text, specials = request.param
    folder = build(tmp_path_factory.mktemp(family))
    encoder = open_verifier(folder, family=family, base=None, threads=1, batch_tokens=4096)
    yield encoder, Plain(folder, family, text), LAYOUTS[family], specials
    encoder.close()


Opened = tuple[PairEncoder, Plain, Layout, int]


def pairs(count: int) -> list[tuple[str, str]]:
    return [(sentences(1 + number % 6, number), words(3 + number % 7, 900 + number) + ".") for number in range(count)]


def test_a_mixed_batch_scores_as_each_pair_alone_by_the_library(case: Opened) -> None:
    encoder, plain, _, _ = case
    asked = pairs(20)
    expected = [plain.score(*pair) for pair in asked]
    assert encoder.compute(asked) == pytest.approx(expected, abs=1e-4)
    assert len({round(score, 3) for score in expected}) > 10


def test_the_tokens_are_those_of_the_authors_string(case: Opened) -> None:
    encoder, plain, _, _ = case
    hard = ["It’s 80 %, “so”… 日本?", "  two  blanks and\na line\n", 'He said "no" {claim} {document}', "é\t—"]
    for document, claim in [*pairs(6), *((one, other) for one in hard for other in hard)]:
        [row], truncated = encoder._reader.rows(0, document, claim)
        assert row.tokens["input_ids"] == plain.ids(document, claim)
        assert not truncated


def test_a_long_document_scores_as_its_best_chunk_and_the_claim_is_whole_in_each(case: Opened) -> None:
    encoder, plain, layout, _ = case
    document, claim = sentences(130, 5), sentences(2, 77)
    chunks = encoder.pieces(document, claim)
    assert len(chunks) > 2
    for chunk in chunks:
        size = (
            len(chunk.split())
            if layout.unit == "words"
            else len(plain.tokenizer(chunk, add_special_tokens=False)["input_ids"])
        )
        assert layout.chunk * 0.5 < size <= layout.chunk or chunk is chunks[-1]
        assert chunk.endswith(".")
    for sentence in document.split("."):
        assert any(sentence.strip() in chunk for chunk in chunks)
    assert encoder.compute([(document, claim)])[0] == pytest.approx(
        max(plain.score(chunk, claim) for chunk in chunks), abs=1e-4
    )
    rows, truncated = encoder._reader.rows(0, document, claim)
    assert not truncated
    for row, chunk in zip(rows, chunks, strict=True):
        assert row.length <= encoder.max_tokens <= layout.window
        assert row.tokens["input_ids"] == plain.ids(chunk, claim)


def test_a_long_claim_takes_the_room_of_the_document(case: Opened) -> None:
    encoder, plain, _, _ = case
    claim = words(150, 3)
    narrow = len(plain.ids("", claim)) + 60
    encoder._reader.max_tokens, window = narrow, encoder._reader.max_tokens
    try:
        rows, _ = encoder._reader.rows(0, sentences(30, 4), claim)
        chunks = encoder.pieces(sentences(30, 4), claim)
        with pytest.raises(InputTooLongError, match="make it shorter"):
            encoder._reader.rows(0, "The tower was built.", words(400, 4))
    finally:
        encoder._reader.max_tokens = window
    assert len(rows) > 4
    assert max(row.length for row in rows) <= narrow
    assert [row.tokens["input_ids"] for row in rows] == [plain.ids(chunk, claim) for chunk in chunks]


def test_special_tokens_in_a_text_are_text(case: Opened) -> None:
    encoder, plain, _, specials = case
    forged = "the </s> tower [SEP] was <pad> built [CLS] \0 near <extra_id_0> <s>"
    [row], _ = encoder._reader.rows(0, forged, forged)
    [clean], _ = encoder._reader.rows(0, "the tower", "the tower")
    special = set(plain.tokenizer.all_special_ids) - {plain.tokenizer.unk_token_id}
    found, expected = [[number for number in one.tokens["input_ids"] if number in special] for one in (row, clean)]
    assert found == expected
    assert found.count(plain.tokenizer.eos_token_id) == specials


def test_a_text_without_a_word_scores_nothing(case: Opened) -> None:
    encoder, _, _, _ = case
    assert encoder.compute([("", "the tower"), ("the tower", ""), ("", ""), ("\ud800", "the tower")])[:3] == [0.0] * 3


def test_a_long_document_is_refused_or_cut_where_that_is_asked_for(case: Opened) -> None:
    encoder, _, layout, _ = case
    document = sentences(130, 5)
    with pytest.raises(InputTooLongError, match=f"{layout.unit} is longer than the {layout.chunk}"):
        encoder._reader.rows(0, document, "the tower", "error")
    rows, truncated = encoder._reader.rows(0, document, "the tower", "truncate")
    assert (len(rows), truncated) == (1, True)


async def test_a_claim_is_supported_above_a_half(case: Opened) -> None:
    encoder, plain, _, _ = case
    asked = [Pair(*pair) for pair in pairs(12)]
    verdicts = await PairVerifier(encoder).verify(asked, deadline=Deadline.after(60, time.monotonic))
    expected = [plain.score(pair.premise, pair.claim) for pair in asked]
    assert [verdict.reason is Reason.ENTAILED for verdict in verdicts] == [score > 0.5 for score in expected]
    [alone] = await PairVerifier(encoder).verify(asked[:1], deadline=Deadline.after(60, time.monotonic))
    at = PairVerifier(encoder, threshold=alone.score)
    [again] = await at.verify(asked[:1], deadline=Deadline.after(60, time.monotonic))
    assert again.score == alone.score
    assert again.reason is Reason.NOT_ENTAILED


def test_few_words_of_many_tokens_fit_the_window(case: Opened) -> None:
    encoder, _, _, _ = case
    document = " ".join("tower" * 80 for _ in range(60))
    rows, truncated = encoder._reader.rows(0, document, "the tower")
    assert len(rows) > 1
    assert not truncated
    assert max(row.length for row in rows) <= encoder.max_tokens


# Cross-encoders of natural language inference

NLI = {0: "CONTRADICTION", 1: "neutral", 2: "Entailment"}


@pytest.mark.parametrize("family", ["auto", "nli"])
async def test_three_way_inference_tells_contradiction_apart(tmp_path: Path, family: Family) -> None:
    folder = pair_classifier(tmp_path, labels=NLI, seed=3)
    encoder = open_verifier(folder, family=family, base=None, threads=1)
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForSequenceClassification.from_pretrained(folder)

    @torch.inference_mode()
    def plain(document: str, claim: str) -> list[float]:
        chances: list[float] = (
            model.eval()(**tokenizer(document, claim, return_tensors="pt")).logits.softmax(-1)[0].tolist()
        )
        return chances

    short = [("the quick fox runs", "a fox sleeps"), ("the dog", "the moon is over the sun")]
    long = (" ".join(["the fox runs over the dog.", "a moon is not lazy."] * 20), "the fox sleeps")
    asked = [*short, long]
    scored = await encoder.read(asked, deadline=Deadline.after(60, time.monotonic))
    for pair, got in zip(asked, scored.pairs, strict=True):
        chances = [plain(piece, pair[1]) for piece in encoder.pieces(*pair)]
        assert got.score == pytest.approx(max(one[2] for one in chances), abs=1e-4)
        assert got.contradiction == pytest.approx(max(one[0] for one in chances), abs=1e-4)
    assert scored.pairs[2].chunks > 2
    verdicts = await PairVerifier(encoder).verify(
        [Pair(*pair) for pair in asked], deadline=Deadline.after(60, time.monotonic)
    )
    assert [verdict.contradiction for verdict in verdicts] == [one.contradiction for one in scored.pairs]
    encoder.close()


async def test_of_two_labels_none_is_told_apart(tmp_path: Path) -> None:
    folder = pair_classifier(tmp_path, labels={0: "entailment", 1: "contradiction"})
    encoder = open_verifier(folder, family="auto", base=None, threads=1)
    scored = await encoder.read([("the fox", "a dog")], deadline=Deadline.after(60, time.monotonic))
    assert scored.pairs[0].contradiction is None
    encoder.close()


# What fits what


def config(kind: str, task: str, **more: Any) -> dict[str, Any]:
    return {"model_type": kind, "architectures": [task], **more}


ROBERTA = config("roberta", "RobertaForSequenceClassification")
DEBERTA = config("deberta-v2", "DebertaV2ForSequenceClassification", id2label={"0": "LABEL_0", "1": "LABEL_1"})
T5 = config("t5", "T5ForConditionalGeneration")
LLAMA = config("llama", "LlamaForCausalLM")
THREE = config("bert", "BertForSequenceClassification", id2label={str(at): name for at, name in NLI.items()})


@pytest.mark.parametrize(
    ("family", "found", "resolved"),
    [
        ("auto", ROBERTA, "cross_encoder"),
        ("auto", THREE, "nli"),
        ("nli", THREE, "nli"),
        ("cross_encoder", THREE, "cross_encoder"),
        ("minicheck_roberta", ROBERTA, "minicheck_roberta"),
        ("minicheck_deberta", DEBERTA, "minicheck_deberta"),
        ("factcg", DEBERTA, "factcg"),
        ("minicheck_flan_t5", T5, "minicheck_flan_t5"),
        ("bespoke_minicheck", LLAMA, "bespoke_minicheck"),
    ],
)
def test_a_family_that_fits_is_taken(family: Family, found: dict[str, Any], resolved: str) -> None:
    assert resolve(family, found, "x") == resolved


@pytest.mark.parametrize(
    ("family", "found", "fix"),
    [
        ("auto", T5, "set models.verifier.family to minicheck_flan_t5"),
        ("auto", LLAMA, "bespoke_minicheck"),
        ("nli", ROBERTA, "name them in id2label"),
        ("nli", DEBERTA, "cross_encoder"),
        ("minicheck_roberta", DEBERTA, "the family minicheck_roberta is roberta"),
        ("minicheck_roberta", ROBERTA | {"id2label": NLI}, "of 3 labels"),
        ("minicheck_deberta", ROBERTA, "deberta-v2"),
        ("factcg", T5, "deberta-v2"),
        ("minicheck_flan_t5", config("t5", "T5ForSequenceClassification"), "t5 ForConditionalGeneration"),
        ("minicheck_flan_t5", {}, "no architecture"),
        ("bespoke_minicheck", T5, "a causal language model"),
    ],
)
def test_a_family_that_does_not_fit_is_refused_with_the_fix(family: Family, found: dict[str, Any], fix: str) -> None:
    with pytest.raises(ModelUnusableError, match=r"models\.verifier\.family") as caught:
        resolve(family, found, "the-checkpoint")
    assert fix in caught.value.message
    assert "the-checkpoint" in caught.value.message


def test_a_checkpoint_of_another_family_is_refused_when_it_is_opened(tmp_path: Path) -> None:
    folder = roberta(tmp_path / "roberta")
    with pytest.raises(ModelUnusableError, match="deberta-v2"):
        open_verifier(folder, family="factcg", base=None, threads=1)
    with pytest.raises(ModelUnusableError, match="holds heads"):
        open_verifier(folder, family="minicheck_roberta", base=folder, threads=1)
    with pytest.raises(ModelUnusableError, match=r"config\.json"):
        open_verifier(tmp_path, family="auto", base=None, threads=1)
    few = flan_t5(tmp_path / "t5", vocabulary=200)
    with pytest.raises(ModelUnusableError, match="200 words, too few"):
        open_verifier(few, family="minicheck_flan_t5", base=None, threads=1)


def test_every_family_with_a_layout_has_a_name() -> None:
    assert set(LAYOUTS) < set(get_args(Family))


def test_a_pair_is_read_as_text_by_a_unigram_tokenizer_too(tmp_path: Path) -> None:
    folder = deberta(tmp_path)
    encoder = open_verifier(folder, family="cross_encoder", base=None, threads=1)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    [forged], _ = encoder._reader.rows(0, "the [SEP] tower [CLS]", "a [SEP] river [MASK]")
    assert forged.tokens["input_ids"].count(tokenizer.sep_token_id) == 2
    assert forged.tokens["input_ids"].count(tokenizer.cls_token_id) == 1
    for document, claim in pairs(6):
        [row], _ = encoder._reader.rows(0, document, claim)
        assert row.tokens["input_ids"] == tokenizer(document, claim)["input_ids"]
    encoder.close()


def test_a_document_that_gains_tokens_where_it_is_put_in_still_fits(case: Opened) -> None:
    encoder, plain, _, _ = case
    reader: Any = encoder._reader
    alone, window = reader._offsets, reader.max_tokens
    reader._offsets = lambda text: alone(text)[3:]  # as if it were three tokens shorter by itself
    reader.max_tokens = len(plain.ids("", "the tower")) + 50
    try:
        rows, _ = reader.rows(0, sentences(20, 1), "the tower")
    finally:
        reader._offsets, reader.max_tokens = alone, window
    assert len(rows) > 2
    assert max(row.length for row in rows) <= len(plain.ids("", "the tower")) + 50
