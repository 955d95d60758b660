"""Gaps in the database: askings written and counted, gaps listed, closed and reopened. Methods block and are atomic."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from serving.answer.wire import Versions
from serving.gaps.database import Database
from serving.gaps.errors import UnknownGapError
from serving.gaps.records import (
    MAX_ID_CHARS,
    MAX_NOTE_CHARS,
    Asking,
    AskingOut,
    GapOut,
    GapPage,
    GapQuery,
    Order,
    State,
    decode_cursor,
    encode_cursor,
    short_versions,
    storable,
)
from serving.gaps.rows import asking_of, gap_of, row_of
from serving.gaps.schema import askings, gaps
from serving.gaps.settings import GapsSettings

BY_ANSWER = gaps.c.resolved_at.is_not(None) & gaps.c.answered_request_id.is_not(None)
"""Closed because it was answered, not by a person."""


class GapStore:
    """What the backlog keeps. Errors are those of :class:`~serving.gaps.database.Database`."""

    def __init__(self, database: Database, settings: GapsSettings) -> None:
        self.database = database
        self._settings = settings

    def write(self, batch: Sequence[Asking]) -> None:
        """Counts askings to their gaps, new or known, and makes room. They are durable when this returns.

        What was written before, by key, is not counted again: a batch whose commit was lost on the way may be repeated.
        """
        with self.database.writing() as connection:
            known = sa.select(askings.c.key).where(askings.c.key.in_([asking.key for asking in batch]))
            written = set(connection.scalars(known))
            touched = {_write_one(connection, asking) for asking in batch if asking.key not in written}
            for gap_id in touched:
                trim(connection, gap_id, self._settings.max_askings)
            self._make_room(connection)

    def page(self, query: GapQuery) -> GapPage:
        """One page of gaps. Raises :class:`~serving.gaps.errors.InvalidCursorError`."""
        newest = query.order is Order.NEWEST
        keys = (gaps.c.id,) if newest else (gaps.c.count, gaps.c.id)
        chosen = sa.select(gaps).order_by(*(key.desc() for key in keys)).limit(query.limit + 1)
        if query.state is not None:
            is_open = gaps.c.resolved_at.is_(None)
            chosen = chosen.where(is_open if query.state is State.OPEN else ~is_open)
        if query.reason is not None:
            chosen = chosen.where(gaps.c.reason == query.reason.value)
        if query.cursor is not None:
            chosen = chosen.where(sa.tuple_(*keys) < sa.tuple_(*decode_cursor(query.order, query.cursor)))
        with self.database.reading() as connection:
            found = [row._asdict() for row in connection.execute(chosen)]
            shown = found[: query.limit]
            latest = _latest(connection, [row["id"] for row in shown])
        end = shown[-1] if len(found) > query.limit else None
        place = () if end is None else (end["id"],) if newest else (end["count"], end["id"])
        return GapPage(
            gaps=tuple(gap_of(row, latest.get(row["id"])) for row in shown),
            next_cursor=encode_cursor(query.order, place) if place else None,
        )

    def show(self, gap_id: int) -> tuple[GapOut, list[AskingOut]]:
        """A gap and what is kept of its askings, latest first. Raises :class:`UnknownGapError`."""
        with self.database.reading() as connection:
            row = connection.execute(sa.select(gaps).where(gaps.c.id == gap_id)).one_or_none()
            asked = sa.select(askings).where(askings.c.gap_id == gap_id).order_by(askings.c.id.desc())
            kept = [asking_of(one._asdict()) for one in connection.execute(asked)]
        if row is None:
            raise UnknownGapError(f"there is no gap {gap_id}; `answer gaps list --all` shows those there are")
        return gap_of(row._asdict(), kept[0] if kept else None), kept

    def resolve(
        self,
        gap_id: int,
        *,
        at: datetime,
        note: str | None = None,
        answered_request_id: str | None = None,
        answered_versions: Versions | None = None,
    ) -> None:
        """Closes a gap, also one that is closed. Raises :class:`UnknownGapError`."""
        answered_by = None if answered_request_id is None else storable(answered_request_id, MAX_ID_CHARS)
        versions = None if answered_versions is None else short_versions(answered_versions).model_dump()
        self._update(
            gap_id,
            resolved_at=at,
            note=None if note is None else storable(note, MAX_NOTE_CHARS),
            answered_request_id=answered_by,
            answered_versions=sa.null() if versions is None else versions,
        )

    def reopen(self, gap_id: int) -> None:
        """Undoes :meth:`resolve`. Raises :class:`UnknownGapError`."""
        self._update(gap_id, **OPENED)

    def retried(self, gap_id: int, *, at: datetime) -> None:
        """Notes that a gap was asked again, and declined again. Raises :class:`UnknownGapError`."""
        self._update(gap_id, retried_at=at)

    def to_retry(self, ids: Sequence[int] | None, *, limit: int) -> list[tuple[int, str | None]]:
        """Open gaps with their questions (None: only the hash is kept), least recently retried first, then most asked.

        ``ids`` are looked at alone, and in any state; unknown ones raise :class:`UnknownGapError`.
        """
        chosen = sa.select(gaps.c.id, gaps.c.question).limit(limit)
        if ids is None:
            chosen = chosen.where(gaps.c.resolved_at.is_(None), gaps.c.question.is_not(None)).order_by(
                gaps.c.retried_at.is_not(None), gaps.c.retried_at, gaps.c.count.desc(), gaps.c.id
            )
        else:
            chosen = chosen.where(gaps.c.id.in_(ids)).order_by(gaps.c.id)
        with self.database.reading() as connection:
            found = [(row.id, row.question) for row in connection.execute(chosen)]
        missing = sorted(set(ids or ()) - {gap_id for gap_id, _ in found})
        if missing:
            raise UnknownGapError(f"there is no gap {', '.join(map(str, missing))}")
        return found

    def _update(self, gap_id: int, **values: Any) -> None:
        with self.database.writing() as connection:
            done = connection.execute(gaps.update().where(gaps.c.id == gap_id).values(**values))
        if not done.rowcount:
            raise UnknownGapError(f"there is no gap {gap_id}; `answer gaps list --all` shows those there are")

    def _make_room(self, connection: sa.Connection) -> None:
        """Removes the gaps beyond the bound: the longest resolved, then those not asked for longest."""
        excess = connection.execute(sa.select(sa.func.count()).select_from(gaps)).scalar_one() - self._settings.max_gaps
        if excess <= 0:
            return
        age = sa.func.coalesce(gaps.c.resolved_at, gaps.c.last_seen)
        oldest = sa.select(gaps.c.id).order_by(gaps.c.resolved_at.is_(None), age, gaps.c.id).limit(excess)
        connection.execute(gaps.delete().where(gaps.c.id.in_(oldest)))  # their askings go with them


OPENED: dict[str, Any] = {
    "resolved_at": None,
    "note": None,
    "answered_request_id": None,
    "answered_versions": sa.null(),  # None would be JSON's null
}


def _write_one(connection: sa.Connection, asking: Asking) -> int:
    """Writes one asking; returns the id of its gap."""
    gap_id = _gap_of(connection, asking)
    if gap_id is None:
        values = {
            "tenant": asking.tenant or "",
            "question": asking.question,
            "question_hash": asking.question_hash,
            "reason": asking.reason.value,
            "count": 1,
            "first_seen": asking.asked_at,
            "last_seen": asking.asked_at,
        }
        gap_id = int(connection.execute(gaps.insert().values(values).returning(gaps.c.id)).scalar_one())
    else:
        again = {"count": gaps.c.count + 1, "reason": asking.reason.value, "last_seen": asking.asked_at}
        connection.execute(gaps.update().where(gaps.c.id == gap_id).values(**again))
        # A person's "resolved" stands. What an answer had closed is declined again: it is open after all.
        connection.execute(gaps.update().where(gaps.c.id == gap_id, BY_ANSWER).values(**OPENED))
    connection.execute(askings.insert().values(**row_of(asking), gap_id=gap_id))
    return gap_id


def _gap_of(connection: sa.Connection, asking: Asking) -> int | None:
    """The gap that an equal question has: as its own, or as one of those that were grouped into it."""
    mine = gaps.c.tenant == (asking.tenant or "")
    own = sa.select(gaps.c.id).where(mine, gaps.c.question_hash == asking.question_hash)
    found = connection.execute(own).scalar_one_or_none()
    if found is None:
        wording = askings.c.question_hash == asking.question_hash
        grouped = sa.select(gaps.c.id).join(askings, askings.c.gap_id == gaps.c.id).where(mine, wording).limit(1)
        found = connection.execute(grouped).scalar_one_or_none()
    return found


def trim(connection: sa.Connection, gap_id: int, kept: int) -> None:
    """Removes all but the latest ``kept`` askings of a gap."""
    of_gap = askings.c.gap_id == gap_id
    latest = sa.select(askings.c.id).where(of_gap).order_by(askings.c.id.desc()).limit(kept)
    connection.execute(askings.delete().where(of_gap, askings.c.id.not_in(latest)))


def _latest(connection: sa.Connection, ids: Sequence[int]) -> dict[int, AskingOut]:
    last = sa.select(sa.func.max(askings.c.id)).where(askings.c.gap_id.in_(ids)).group_by(askings.c.gap_id)
    rows = connection.execute(sa.select(askings).where(askings.c.id.in_(last)))
    return {row.gap_id: asking_of(row._asdict()) for row in rows}
