"""Incidents: what an exception means here. Something broke, or the call was wrong; never "we do not know".

Each error knows its stable ``code``, its HTTP ``status`` and whether the same call may succeed later (``retryable``).
The message is for the caller: it names what to change and holds no internals.
"""

from __future__ import annotations

from typing import Any, ClassVar


class AnswerError(Exception):
    """Base of every error that may reach a caller."""

    code: ClassVar[str] = "internal"
    status: ClassVar[int] = 500
    retryable: ClassVar[bool] = False

    def __init__(self, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.retry_after_s = retry_after_s

    def __reduce__(self) -> tuple[Any, ...]:
        # Exceptions cross Ray's process boundaries pickled, and keyword arguments are not in ``args``.
        return (_rebuild, (type(self), self.message, self.retry_after_s))


def _rebuild(kind: type[AnswerError], message: str, retry_after_s: float | None) -> AnswerError:
    return kind(message, retry_after_s=retry_after_s)


class InvalidQuestionError(AnswerError):
    """The question is empty, too long, or not text."""

    code = "invalid_question"
    status = 422


class DeadlineExceededError(AnswerError):
    """The deadline passed before anything was proven."""

    code = "deadline_exceeded"
    status = 408
    retryable = True


class OverloadedError(AnswerError):
    """The budget of this kind of call is spent. ``retry_after_s`` says when to come back."""

    code = "overloaded"
    status = 429
    retryable = True


class UnavailableError(AnswerError):
    """A part that the answer needs is down."""

    code = "unavailable"
    status = 503
    retryable = True


class IndexMissingError(UnavailableError):
    """There is no index, or it cannot be read."""

    code = "index_missing"


class DeviceMissingError(UnavailableError):
    """A GPU that the settings ask for cannot be used."""

    code = "device_missing"
    retryable = False


class GroundingError(AnswerError):
    """An answer's grounding does not hold together. Nothing is shown: this is a bug of ours, or a hostile input."""

    code = "grounding_invalid"
    status = 500


class SpanOutOfRangeError(GroundingError):
    """A support's span starts after it ends, or leaves the text."""

    code = "span_out_of_range"


class SpanSplitsCharacterError(GroundingError):
    """A support's span begins or ends inside a UTF-8 sequence."""

    code = "span_splits_character"


class SegmentTextMismatchError(GroundingError):
    """A support's text differs from the bytes of its span."""

    code = "segment_text_mismatch"


class UnknownChunkError(GroundingError):
    """A support names a chunk that does not exist."""

    code = "unknown_chunk"


class EmptySupportError(GroundingError):
    """A support has no chunk, or not one confidence for each."""

    code = "empty_support"
