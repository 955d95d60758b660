"""ALCE's ``eval.py`` (princeton-nlp/ALCE @246c476) to the bit, its quirks included, for pinning to published numbers.

Known quirks, kept: ``[1, 2]`` and ``[1-3]`` cite the first number only; ``[0]`` cites the last document; a number
out of range voids the whole sentence and leaves its citations out of precision; ``a[0]`` in code is a citation;
``[1][1]`` counts twice; every ``]`` and ``" |"`` is removed; a marker after the full stop goes to the next sentence;
an output is cut at its first line break; an empty one is left out of both means; a decline in words scores 0.

The original cuts sentences with NLTK's punkt; the splitter is an argument, and the figures are ALCE's own only with
``nltk.sent_tokenize``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from serving.evaluation import alce
from serving.evaluation.alce import AT_MOST, Credit, Document, Item
from serving.evaluation.judgements import Entails, Pair
from serving.evaluation.strings import legacy_str_em

Splitter = Callable[[str], list[str]]

_MARK = re.compile(r" ?\[(\d+)")
"""A bracket and the digits after it, with the space before: all that the original takes for a citation."""

_END_OF_TURN = "<|im_end|>"


@dataclass(frozen=True, slots=True)
class Citations:
    """``recall`` and ``precision`` in percent (NaN when every output was empty), and each scored item's, in [0, 1].

    ``scored`` are the positions of the items that the means are of: those whose output was not empty.
    """

    recall: float
    precision: float
    recalls: tuple[float, ...]
    precisions: tuple[float, ...]
    scored: tuple[int, ...]
    sentences: int
    multi_cited: int
    multi_cited_supported: int
    overcited: int


@dataclass(frozen=True, slots=True)
class Result:
    """The whole of ``eval.py --citations``, without the metrics that need a model: ROUGE, QA and MAUVE."""

    length: float
    str_em: float
    str_hit: float
    citations: Citations


@dataclass(frozen=True, slots=True)
class _Sentence:
    target: str
    refs: tuple[int, ...]
    in_range: bool


def score(items: Sequence[Item], entails: Entails, splitter: Splitter, *, at_most: int | None = AT_MOST) -> Result:
    """What the original prints for these items. ``items`` must not be empty."""
    cut = [cut_output(item.output) for item in items]
    plain = [remove_citations(output) for output in cut]
    str_em, str_hit = legacy_str_em(plain, [item.answers for item in items])
    length = sum(len(output.split()) for output in plain) / len(plain)
    return Result(length, str_em, str_hit, citations(items, entails, splitter, at_most=at_most))


def citations(
    items: Sequence[Item],
    entails: Entails,
    splitter: Splitter,
    *,
    at_most: int | None = AT_MOST,
    qampari: bool = False,
) -> Citations:
    """``compute_autoais``. With ``qampari`` an output is a list cut at commas, each entry read after the question.

    Raises ``IndexError``, as the original does, for ``[0]`` in an item without documents.
    """
    recalls: list[float] = []
    precisions: list[float] = []
    scored: list[int] = []
    seen: list[tuple[int, Credit]] = []
    for position, item in enumerate(items):
        sentences = _sentences(item, splitter, at_most, qampari=qampari)
        if not sentences:
            continue
        premises = [premise(doc) for doc in item.docs]
        judged = [_judge(sentence, premises, entails) for sentence in sentences]
        counted = sum(credit.counted for credit in judged)
        recalls.append(sum(credit.supported for credit in judged) / len(judged))
        precisions.append(sum(credit.credited for credit in judged) / counted if counted else 0)
        scored.append(position)
        seen += [(len(sentence.refs), credit) for sentence, credit in zip(sentences, judged, strict=True)]
    return Citations(
        recall=_percent(recalls),
        precision=_percent(precisions),
        recalls=tuple(recalls),
        precisions=tuple(precisions),
        scored=tuple(scored),
        sentences=len(seen),
        multi_cited=sum(refs > 1 for refs, _ in seen),
        multi_cited_supported=sum(refs > 1 and credit.supported for refs, credit in seen),
        overcited=sum(credit.overcited for _, credit in seen),
    )


def pairs(
    items: Sequence[Item], splitter: Splitter, *, at_most: int | None = AT_MOST, qampari: bool = False
) -> Iterator[Pair]:
    """Every judgement that :func:`citations` may ask for, with repeats: what a grader is to be given."""
    for item in items:
        premises = [premise(doc) for doc in item.docs]
        for sentence in _sentences(item, splitter, at_most, qampari=qampari):
            if sentence.in_range:
                yield from alce.pairs(sentence.target, sentence.refs, premises)


def premise(doc: Document) -> str:
    return f"Title: {doc.title}\n{doc.text}"


def cut_output(output: str) -> str:
    """The part of an output that the original looks at: its first line, without the end-of-turn token."""
    first, _, _ = output.strip().partition("\n")
    return "".join(first.split(_END_OF_TURN))


def remove_citations(text: str) -> str:
    unmarked = _MARK.sub("", text)
    for leftover in (" |", "]"):  # in this order: what the second brings together the first has passed by
        unmarked = "".join(unmarked.split(leftover))
    return unmarked


def references(sentence: str) -> list[int]:
    """0-based document numbers, as written: out of range, repeated, and -1 for ``[0]``."""
    return [int(number) - 1 for number in _MARK.findall(sentence)]


def _sentences(item: Item, splitter: Splitter, at_most: int | None, *, qampari: bool) -> list[_Sentence]:
    output = cut_output(item.output)
    if qampari:
        entries = output.rstrip().rstrip(".").rstrip(",").split(",")
        texts = [f"{item.question} {entry.strip()}" for entry in entries]
    else:
        texts = splitter(output)
    return [_read(text, len(item.docs), at_most) for text in texts]


def _read(text: str, docs: int, at_most: int | None) -> _Sentence:
    refs = references(text)
    in_range = all(ref < docs for ref in refs)
    return _Sentence(
        target=remove_citations(text).strip(),
        refs=tuple(refs[:at_most] if in_range else refs),
        in_range=in_range,
    )


def _judge(sentence: _Sentence, premises: Sequence[str], entails: Entails) -> Credit:
    if not sentence.in_range:
        return Credit(supported=False, credited=0, counted=0)
    return alce.judge(sentence.target, sentence.refs, premises, entails)


def _percent(values: Sequence[float]) -> float:
    # numpy's own summation, as the original uses: another order of adding differs in the last bits.
    return float(100 * np.mean(values)) if values else float("nan")
