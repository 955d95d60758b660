"""The structured reply: an object that says whether the passages answer, which ones do, and what.

The JSON schema that a model is held to is reflected from the type that its reply decodes into, so that the two cannot
drift. Members stand in the order they are written in: what decides how the text is read comes before it.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, create_model

from serving.answer.types import DeclineReason


class StructuredReply(BaseModel):
    """A reply over numbered passages. ``cites`` are the numbers (from 1) of those that state the ``text``.

    A reply that declines has no text that counts. What no schema held may cite numbers that are no passage: they are
    kept, and judged as fabricated where passages are known.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    declined: bool
    decline_reason: Literal[DeclineReason.NOT_IN_PASSAGES] | None
    cites: tuple[int, ...]
    text: str


_MEMBERS: dict[str, TypeAdapter[Any]] = {
    name: TypeAdapter(field.rebuild_annotation()) for name, field in StructuredReply.model_fields.items()
}


def decode_member(name: str, value: Any) -> Any:
    """One member of a reply, decoded as the whole would be. Raises :class:`pydantic.ValidationError`."""
    return _MEMBERS[name].validate_python(value)


@lru_cache(maxsize=64)
def bounded(passages: int) -> type[StructuredReply]:
    """The type of the replies over ``passages`` numbered passages: they cite none but 1…``passages``."""
    number = Annotated[int, Field(ge=1, le=passages)]
    cites = (tuple[number, ...], Field(max_length=passages))
    made: type[StructuredReply] = create_model("StructuredReply", __base__=StructuredReply, cites=cites)
    return made


@lru_cache(maxsize=64)
def schema(passages: int) -> str:
    """The JSON schema of :func:`bounded`, as JSON: the same text for the same number, which an engine compiles once.

    Titles and descriptions are left out: a server may put the schema into its prompt.
    """
    return json.dumps(_bare(bounded(passages).model_json_schema()))


def _bare(node: Any) -> Any:
    if isinstance(node, list):
        return [_bare(item) for item in node]
    if not isinstance(node, dict):
        return node
    members = {key: _bare(value) for key, value in node.items() if key not in ("title", "description", "properties")}
    if "properties" in node:  # whose keys are names of members, whatever they are
        members["properties"] = {name: _bare(value) for name, value in node["properties"].items()}
    return members
