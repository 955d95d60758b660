"""Scores whole answers over a ``qa`` suite. A grader's judgements come in as a function; without one, strings decide.

``usefulness`` is one number for each case: a right decline 1, a wrong one 0, an answer to what cannot be answered 0,
and any other answer its str-EM where the references are short, else its recall of the reference's words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from serving.answer.types import Outcome
from serving.answer.wire import Answer
from serving.evaluation import abstention, alce_strict, calibration, checks, ragas, retrieval
from serving.evaluation.estimates import NotApplicable, Score
from serving.evaluation.findings import DEPTHS, Family, Findings, averages, latencies, metric
from serving.evaluation.judgements import Entails, Pair
from serving.evaluation.memory import identity
from serving.evaluation.records import Asked
from serving.evaluation.report import Case, Depth, Metric, ShownPassage
from serving.evaluation.rows import QaRow
from serving.evaluation.strings import answer_share

FLOORS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)

FAMILIES: Mapping[str, Family] = {
    "right_decision": "abstention",
    "usefulness": "strings",
    "str_em": "strings",
    "reference_recall": "strings",
    "reference_precision": "strings",
    "answer_in_cited": "strings",
    "cited_supporting": "strings",
    "facts_found": "strings",
    "citation_recall": "alce",
    "citation_precision": "alce",
    "faithfulness": "ragas",
    "context_precision": "ragas",
    "context_recall": "ragas",
}


def pairs(answer: Answer) -> Iterator[Pair]:
    """Every judgement that a grader will be asked for, with repeats."""
    reading = alce_strict.read(answer)
    yield from alce_strict.pairs(reading)
    for claim in reading.claims:
        yield _everything(reading), claim.text


def score(
    rows: Sequence[QaRow], asked: Mapping[str, Asked], entails: Entails | None, rng: np.random.Generator
) -> Findings:
    """Scores the rows that were asked. A row that broke is a failed case without scores."""
    done = [(row, record) for row in rows if (record := asked.get(row.id))]
    answered = [(row, record.answer) for row, record in done if record.answer is not None]
    cases = tuple(_case(row, record, entails) for row, record in done)
    answerable = [(row.answerable, answer.outcome is Outcome.ANSWERED) for row, answer in answered]
    counts = abstention.matrix(answerable)
    graded = [
        abstention.Graded(confidence(answer), 1 - _number(case.scores["usefulness"]))
        for case, (_, record) in zip(cases, done, strict=True)
        if (answer := record.answer) and answer.outcome is Outcome.ANSWERED
    ]
    best = [(row.answerable, max((p.score for p in answer.passages), default=0.0)) for row, answer in answered]
    sure = [pair for row, answer in answered for pair in _stated(row, answer, entails)]
    metrics = [*_abstaining(counts, graded, rng), *averages(cases, FAMILIES, rng)]
    if sure:
        error = calibration.calibration_error([s for s, _ in sure], [true for _, true in sure], rng)
        metrics.append(metric("citation_ece", "verification", error, "lower"))
    can = [each for answers, each in best if answers]
    cannot = [each for answers, each in best if not answers]
    return Findings(
        metrics=tuple(metrics),
        cases=cases,
        worst_by="usefulness",
        failed=sum(record.answer is None for _, record in done),
        matrix=counts,
        risk_coverage=tuple(abstention.risk_coverage(graded)) if graded else (),
        floors=tuple(abstention.floor_losses(can, cannot, FLOORS, rng)) if can and cannot else (),
        calibration=tuple(calibration.reliability([s for s, _ in sure], [true for _, true in sure])) if sure else (),
        depths=_depths(answered, rng),
        latency=latencies((row.id, answer.timings_ms.model_dump()) for row, answer in answered),
    )


def confidence(answer: Answer) -> float:
    """How sure an answer is: its weakest claim's best citation, times the score of the best passage it cites."""
    weakest = min(max(citation.score for citation in claim.citations) for claim in answer.claims)
    return weakest * min(1.0, max(passage.score for passage in checks.cited(answer)))


def _case(row: QaRow, record: Asked, entails: Entails | None) -> Case:
    answer = record.answer
    if answer is None:
        return Case(id=row.id, scores={}, question=row.question, error=record.error or "no answer")
    labels = checks.supporting(row)
    cites = {passage.id for passage in checks.cited(answer)}
    return Case(
        id=row.id,
        scores=_scores(row, answer, entails),
        question=row.question,
        text=answer.marked_text or (answer.decline.message if answer.decline else ""),
        reference=tuple(each for reading in row.readings() for each in reading)
        or (_CANNOT if not row.answerable else ()),
        outcome=f"{answer.outcome}: {answer.decline.reason}" if answer.decline else answer.outcome,
        timings_ms=answer.timings_ms,
        passages=tuple(
            ShownPassage(
                title=passage.title,
                text=passage.text,
                cited=passage.id in cites,
                supporting=labels.get(identity(passage.title, passage.text)),
            )
            for passage in answer.passages
        ),
    )


_CANNOT = ("(the passages do not answer this)",)


def _scores(row: QaRow, answer: Answer, entails: Entails | None) -> dict[str, Score]:
    attempt = ragas.Attempt(row.answerable, answer.outcome is Outcome.ANSWERED)
    scores: dict[str, Score] = {"right_decision": float(attempt.answerable == attempt.answered)}
    scores |= _in_words(row, answer, attempt)
    scores["usefulness"] = _usefulness(row, scores, attempt)
    scores |= _contexts(row, answer)
    if entails is not None:
        scores |= _graded(answer, attempt, entails)
    return scores


def _in_words(row: QaRow, answer: Answer, attempt: ragas.Attempt) -> dict[str, Score]:
    names = ("str_em", "reference_recall", "reference_precision", "answer_in_cited", "cited_supporting", "facts_found")
    aside = NotApplicable.SEARCH if answer.outcome is Outcome.SEARCH else attempt.decline
    if aside is not None:
        return dict.fromkeys(names, aside)
    scores: dict[str, Score] = {
        "cited_supporting": checks.cited_supporting(answer, row),
        "facts_found": checks.facts_found(answer),
    }
    references = [each for reading in row.readings() for each in reading]
    if not row.answerable:
        return dict.fromkeys(names[:4], NotApplicable.NOTHING_TO_FIND) | scores
    return scores | {
        "str_em": answer_share(answer.text, row.readings()),
        "reference_recall": checks.reference_recall(answer.text, references),
        "reference_precision": checks.reference_precision(answer.text, references),
        "answer_in_cited": checks.answer_in_cited(answer, row),
    }


def _usefulness(row: QaRow, scores: Mapping[str, Score], attempt: ragas.Attempt) -> Score:
    if not (attempt.answerable and attempt.answered):
        return scores["right_decision"]
    return scores["str_em" if checks.is_short(row) else "reference_recall"]


def _contexts(row: QaRow, answer: Answer) -> dict[str, Score]:
    labels = checks.supporting(row)
    needed = {name for name, label in labels.items() if label}
    if answer.outcome is Outcome.SEARCH or not needed:
        reason = NotApplicable.NO_LABEL if row.answerable else NotApplicable.NOTHING_TO_FIND
        return {"context_precision": reason, "context_recall": reason}
    given = [identity(passage.title, passage.text) for passage in answer.passages]
    return {
        "context_precision": ragas.context_precision([name in needed for name in given]),
        "context_recall": ragas.context_recall([name in given for name in sorted(needed)]),
    }


def _graded(answer: Answer, attempt: ragas.Attempt, entails: Entails) -> dict[str, Score]:
    reading = alce_strict.read(answer)
    cited = alce_strict.score(reading, entails)
    everything = _everything(reading)
    supported = [entails(everything, claim.text) for claim in reading.claims]
    return {
        "citation_recall": cited.recall,
        "citation_precision": cited.precision,
        "faithfulness": ragas.faithfulness(attempt, supported),
    }


def _everything(reading: alce_strict.Reading) -> str:
    return "\n\n".join(reading.premises)


def _stated(row: QaRow, answer: Answer, entails: Entails | None) -> Iterator[tuple[float, bool]]:
    """Each citation's stated score, and whether it is right: by the grader, else by the row's label."""
    labels = checks.supporting(row)
    premises = alce_strict.read(answer).premises
    for claim in answer.claims:
        for citation in claim.citations:
            passage = answer.passages[citation.chunk]
            label = labels.get(identity(passage.title, passage.text))
            if entails is not None:
                yield min(1.0, citation.score), entails(premises[citation.chunk], claim.text)
            elif label is not None:
                yield min(1.0, citation.score), label


def _abstaining(
    counts: abstention.Matrix, graded: Sequence[abstention.Graded], rng: np.random.Generator
) -> list[Metric]:
    shares = abstention.rates(counts, rng)
    found = [
        metric("answered_when_answerable", "abstention", shares.answered_when_answerable),
        metric("declined_when_unanswerable", "abstention", shares.declined_when_unanswerable),
    ]
    if graded:
        found.append(metric("aurc", "abstention", abstention.aurc(graded, rng), "lower"))
    return found


def _depths(answered: Sequence[tuple[QaRow, Answer]], rng: np.random.Generator) -> tuple[Depth, ...]:
    """The context's nDCG by depth, over rows whose labels say what of several passages is needed."""
    judged, run = {}, {}
    for row, answer in answered:
        labels = checks.supporting(row)
        if len(labels) > 1 and any(labels.values()):
            judged[row.id] = {name: int(bool(label)) for name, label in labels.items()}
            given = [identity(passage.title, passage.text) for passage in answer.passages]
            run[row.id] = {name: float(-place) for place, name in enumerate(given)}
    if not judged:
        return ()
    return tuple(Depth(k=k, ndcg=retrieval.average(retrieval.ndcg(k), judged, run, rng)) for k in DEPTHS)


def _number(score: Score) -> float:
    return 0.0 if isinstance(score, NotApplicable) else score
