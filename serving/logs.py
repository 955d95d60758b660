"""What may stand in a log: values that cannot break a line, and errors without what they quote.

No line holds a passage or an answer, nor a question unless ``logging.questions`` is on. The message of an error that is
not ours may quote any of them, so it is left out; its type and where it came from stay.
"""

from __future__ import annotations

import json
import re
import traceback
from collections.abc import Iterator, Mapping

from serving.answer.errors import AnswerError

MAX_VALUE_CHARS = 300

_BARE = re.compile(r"[^\s\"=\\\x00-\x20\x7f-\U0010ffff]+")


def text_line(fields: Mapping[str, object]) -> str:
    """``name=value`` pairs on one line, a value in JSON's quotes and escapes wherever it is more than a plain token."""
    return " ".join(f"{name}={_value(value)}" for name, value in fields.items())


def shortened(text: str) -> str:
    """At most :data:`MAX_VALUE_CHARS` characters of it."""
    return text if len(text) <= MAX_VALUE_CHARS else f"{text[: MAX_VALUE_CHARS - 1]}…"


def described(error: BaseException) -> str:
    """An error and what caused it, as types and places. Only errors of ours say their message, which quotes nobody."""
    return " <- ".join(f"{_said(one)} at {_place(one)}" for one in _chain(error))


def _value(value: object) -> str:
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return text if _BARE.fullmatch(text) else json.dumps(text)


def _said(error: BaseException) -> str:
    name = f"{type(error).__module__}.{type(error).__qualname__}".removeprefix("builtins.")
    return f"{name}({json.dumps(shortened(error.message))})" if isinstance(error, AnswerError) else name


def _place(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    return " > ".join(f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames) or "no frame"


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    one: BaseException | None = error
    while one is not None and id(one) not in seen:
        seen.add(id(one))
        yield one
        one = one.__cause__ or (None if one.__suppress_context__ else one.__context__)
