"""Gaps and askings."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")
MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "gaps",
        sa.Column("id", ID, primary_key=True, autoincrement=True),
        sa.Column("tenant", sa.Text, nullable=False),
        sa.Column("question", sa.Text),
        sa.Column("question_hash", sa.String(64), nullable=False),
        sa.Column("reason", sa.String(32), nullable=False),
        sa.Column("count", sa.BigInteger, nullable=False),
        sa.Column("first_seen", MOMENT, nullable=False),
        sa.Column("last_seen", MOMENT, nullable=False),
        sa.Column("vector", sa.LargeBinary),
        sa.Column("embedder", sa.Text),
        sa.Column("retried_at", MOMENT),
        sa.Column("resolved_at", MOMENT),
        sa.Column("note", sa.Text),
        sa.Column("answered_request_id", sa.Text),
        sa.Column("answered_versions", sa.JSON),
        sa.UniqueConstraint("tenant", "question_hash", name="gaps_question"),
        sqlite_autoincrement=True,
    )
    op.create_index("gaps_count", "gaps", ["count", "id"])
    op.create_table(
        "askings",
        sa.Column("id", ID, primary_key=True, autoincrement=True),
        sa.Column("key", sa.String(32), nullable=False, unique=True),
        sa.Column("gap_id", ID, sa.ForeignKey("gaps.id", ondelete="CASCADE"), nullable=False),
        sa.Column("question", sa.Text),
        sa.Column("question_hash", sa.String(64), nullable=False),
        sa.Column("asked_at", MOMENT, nullable=False),
        sa.Column("request_id", sa.Text, nullable=False),
        sa.Column("reason", sa.String(32), nullable=False),
        sa.Column("cause", sa.String(32)),
        sa.Column("route_chosen", sa.String(32), nullable=False),
        sa.Column("route_ran", sa.String(32), nullable=False),
        sa.Column("versions", sa.JSON, nullable=False),
        sa.Column("passages", sa.JSON, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("askings_gap", "askings", ["gap_id", "id"])
    op.create_index("askings_question", "askings", ["question_hash"])
