"""Why an evaluation cannot begin or go on. What was finished before is kept."""

from __future__ import annotations

from serving.answer.errors import AnswerError


class EvaluationError(AnswerError):
    """A run cannot begin: its options contradict each other, or name what is not there."""

    code = "evaluation_invalid"


class RunStoppedError(AnswerError):
    """A run cannot go on: the server is gone, the disk is full, everything fails. Finished cases are kept."""

    code = "evaluation_stopped"
