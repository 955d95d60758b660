"""What of the gap backlog is a choice."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr

_SCHEMES = ("sqlite:///", "postgresql://", "postgres://", "postgresql+psycopg://")


def _known(url: SecretStr) -> SecretStr:
    if not url.get_secret_value().startswith(_SCHEMES):
        raise ValueError("write postgresql://user@host/database or sqlite:////absolute/path/gaps.sqlite3")
    return url


class Questions(StrEnum):
    """What is kept of a declined question's text."""

    KEEP = "keep"
    HASH = "hash"
    """Only its SHA-256. Equal questions are counted together; nothing can be grouped by meaning or asked again."""


Count = Annotated[int, Field(ge=1)]


class GapsSettings(BaseModel):
    """The backlog of declined questions."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    enabled: bool = True
    url: Annotated[SecretStr, AfterValidator(_known)] | None = None
    """``postgresql://…`` or ``sqlite:///…``; a SQLite file in ``home`` when not set, shared by Routers on one machine.
    PostgreSQL's own PGPASSWORD or ~/.pgpass keep the password out of here."""
    questions: Questions = Questions.KEEP
    group_above: Annotated[float, Field(ge=0.5, le=1.0)] = 0.95
    """The cosine of two questions' embeddings from which they are one gap, unless their words tell them apart."""
    max_gaps: Annotated[int, Field(ge=1, le=100_000)] = 10_000
    """Beyond it the longest resolved go first, then those not asked for longest."""
    max_askings: Annotated[int, Field(ge=1, le=1_000)] = 20
    """The latest askings that are kept of a gap, each with its passages; all of them are counted."""
    max_passages: Annotated[int, Field(ge=0, le=100)] = 20
    """Passages whose id and score are kept of an asking, best first."""
    max_question_chars: Annotated[int, Field(ge=1, le=20_000)] = 2_000
    """Longer questions are kept cut."""
    max_waiting: Count = 1_000
    """Declines that wait in memory to be written. Beyond it new ones are dropped, counted and logged."""
