"""What can go wrong with the backlog. No answer fails for it: it is logged, or told to who asked for the backlog."""

from __future__ import annotations

from serving.answer.errors import AnswerError, UnavailableError


class GapsUnavailableError(UnavailableError):
    """The backlog's database is down, locked, full or not to be written. Trying again later may help."""

    code = "gaps_unavailable"


class GapsSchemaError(GapsUnavailableError):
    """The database was written by a newer release, whose tables this one does not know."""

    code = "gaps_schema_newer"


class GapsDisabledError(AnswerError):
    """``gaps.enabled`` is false: nothing is kept."""

    code = "gaps_disabled"


class UnstorableGapError(AnswerError):
    """The database refuses this one row, and would again."""

    code = "gap_unstorable"


class InvalidCursorError(AnswerError):
    """The cursor is none that an earlier page gave, for this order."""

    code = "invalid_cursor"


class UnknownGapError(AnswerError):
    """No gap has this id: it never had, or it was grouped into another or made room for newer ones."""

    code = "gap_not_found"
