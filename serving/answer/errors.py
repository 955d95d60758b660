"""Incidents: what an exception means here. Something broke, or the call was wrong; never "we do not know".

Each error names its row of :data:`~serving.answer.codes.TABLE`, which knows the HTTP ``status`` and whether the same
call may succeed later. The message is for the caller: it names what to change, holds no internals, and quotes no
question, passage or answer, since it is logged.
"""

from __future__ import annotations

from typing import Any, ClassVar

from serving.answer.codes import TABLE


class AnswerError(Exception):
    """Base of every error that may reach a caller. A subclass with a code of its own has a row in the table."""

    code: ClassVar[str] = "internal"
    status: ClassVar[int] = TABLE["internal"].status
    retryable: ClassVar[bool] = TABLE["internal"].retryable

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        row = TABLE.get(cls.code)
        if row is None:
            raise TypeError(f"{cls.__name__} has the code {cls.code!r}: add its row to CODES in serving.answer.codes")
        cls.status, cls.retryable = row.status, row.retryable

    def __init__(self, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.retry_after_s = retry_after_s

    def __reduce__(self) -> tuple[Any, ...]:
        # Exceptions cross Ray's process boundaries pickled, and keyword arguments are not in ``args``.
        return (_rebuild, (type(self), self.message, self.retry_after_s))


def _rebuild(kind: type[AnswerError], message: str, retry_after_s: float | None) -> AnswerError:
    return kind(message, retry_after_s=retry_after_s)


# What the caller got wrong


class MalformedRequestError(AnswerError):
    code = "malformed_request"


class MalformedJsonError(AnswerError):
    code = "malformed_json"


class NotFoundError(AnswerError):
    code = "not_found"


class MethodNotAllowedError(AnswerError):
    code = "method_not_allowed"


class BodyTooLargeError(AnswerError):
    code = "body_too_large"


class UnsupportedMediaTypeError(AnswerError):
    code = "unsupported_media_type"


class InvalidRequestError(AnswerError):
    code = "invalid_request"


class InvalidQuestionError(AnswerError):
    """The question is empty, too long, or not text."""

    code = "invalid_question"


# What time and load did


class DeadlineExceededError(AnswerError):
    """The deadline passed before anything was proven."""

    code = "deadline_exceeded"


class OverloadedError(AnswerError):
    """The budget of this kind of call is spent. ``retry_after_s`` says when to come back."""

    code = "overloaded"


# What is down


class UnavailableError(AnswerError):
    """A part that the answer needs is down."""

    code = "unavailable"


class IndexMissingError(UnavailableError):
    """There is no index, or it cannot be read."""

    code = "index_missing"


class DeviceMissingError(UnavailableError):
    """A GPU that the settings ask for cannot be used."""

    code = "device_missing"


class IndexLockedError(UnavailableError):
    """Another process builds this index and did not finish in time."""

    code = "index_locked"


# What may not be shown


class GroundingError(AnswerError):
    """An answer's grounding does not hold together. Nothing is shown: this is a bug of ours, or a hostile input."""

    code = "grounding_invalid"


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
