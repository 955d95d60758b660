"""Where entailment comes from: a function, or a table that a grader filled before. Never a model of ours."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from serving.answer.errors import AnswerError

Entails = Callable[[str, str], bool]
"""Whether a premise (first) entails a claim (second)."""

Pair = tuple[str, str]
"""A premise and a claim."""


class MissingJudgementError(AnswerError):
    """A table of judgements lacks a pair that a metric asks for."""

    code = "missing_judgement"


class Table:
    """Judgements made before, by premise and claim. A pair that is not in it is an error, never a "no"."""

    def __init__(self, judged: Mapping[Pair, bool]) -> None:
        self._judged = dict(judged)

    def __call__(self, premise: str, claim: str) -> bool:
        try:
            return self._judged[premise, claim]
        except KeyError:
            raise MissingJudgementError(
                f"no judgement of the claim {claim[:80]!r} against the premise {premise[:80]!r}; "
                "have the grader judge every pair that `pairs` lists"
            ) from None
