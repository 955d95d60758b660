"""The backlog's tables, as this release reads and writes them. What makes them are the migrations."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

metadata = sa.MetaData()
Id = sa.BigInteger().with_variant(sa.Integer, "sqlite")


class Moment(sa.TypeDecorator[datetime]):
    """A time in UTC. SQLite forgets time zones; in and out it always has one."""

    impl = sa.DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: sa.Dialect) -> datetime | None:  # noqa: ARG002
        return None if value is None else value.astimezone(UTC)

    def process_result_value(self, value: Any, dialect: sa.Dialect) -> datetime | None:  # noqa: ARG002
        if value is None:
            return None
        moment: datetime = value
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


gaps = sa.Table(
    "gaps",
    metadata,
    sa.Column("id", Id, primary_key=True, autoincrement=True),
    sa.Column("tenant", sa.Text, nullable=False),  # "" for none: a unique index takes no two nulls for equal
    sa.Column("question", sa.Text),
    sa.Column("question_hash", sa.String(64), nullable=False),
    sa.Column("reason", sa.String(32), nullable=False),
    sa.Column("count", sa.BigInteger, nullable=False),
    sa.Column("first_seen", Moment, nullable=False),
    sa.Column("last_seen", Moment, nullable=False),
    sa.Column("vector", sa.LargeBinary),  # float16, as it comes; null until it is grouped
    sa.Column("embedder", sa.Text),
    sa.Column("retried_at", Moment),
    sa.Column("resolved_at", Moment),
    sa.Column("note", sa.Text),
    sa.Column("answered_request_id", sa.Text),
    sa.Column("answered_versions", sa.JSON),
    sa.UniqueConstraint("tenant", "question_hash", name="gaps_question"),
    sa.Index("gaps_count", "count", "id"),
    sqlite_autoincrement=True,  # an id is never given twice, or a cursor and a person's notes would mislead
)

askings = sa.Table(
    "askings",
    metadata,
    sa.Column("id", Id, primary_key=True, autoincrement=True),
    sa.Column("key", sa.String(32), nullable=False, unique=True),
    sa.Column("gap_id", Id, sa.ForeignKey("gaps.id", ondelete="CASCADE"), nullable=False),
    sa.Column("question", sa.Text),
    sa.Column("question_hash", sa.String(64), nullable=False),
    sa.Column("asked_at", Moment, nullable=False),
    sa.Column("request_id", sa.Text, nullable=False),
    sa.Column("reason", sa.String(32), nullable=False),
    sa.Column("cause", sa.String(32)),
    sa.Column("route_chosen", sa.String(32), nullable=False),
    sa.Column("route_ran", sa.String(32), nullable=False),
    sa.Column("versions", sa.JSON, nullable=False),
    sa.Column("passages", sa.JSON, nullable=False),
    sa.Index("askings_gap", "gap_id", "id"),
    sa.Index("askings_question", "question_hash"),
    sqlite_autoincrement=True,
)
