"""Gaps that ask the same become one: the oldest stands for the group, the others' askings are counted to it.

It happens after they are written, on vectors that were computed meanwhile: a question whose vector is not there yet is
a gap of its own until it is.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import sqlalchemy as sa

from serving.gaps.likeness import told_apart
from serving.gaps.schema import askings, gaps
from serving.gaps.settings import GapsSettings
from serving.gaps.store import BY_ANSWER, GapStore, trim
from serving.gaps.vectors import Vectors, nearest


class Grouper:
    """Groups the gaps of a store by vectors of the model called ``embedder``. Methods block; each is atomic."""

    def __init__(self, store: GapStore, settings: GapsSettings, *, embedder: str) -> None:
        self._database = store.database
        self._settings = settings
        self._embedder = embedder

    def waiting(self, limit: int) -> dict[int, str]:
        """The oldest gaps that have no vector of this embedder: id to question."""
        with self._database.reading() as connection:
            rows = connection.execute(
                sa.select(gaps.c.id, gaps.c.question)
                .where(gaps.c.question.is_not(None), gaps.c.embedder.is_distinct_from(self._embedder))
                .order_by(gaps.c.id)
                .limit(limit)
            )
            return {row.id: row.question for row in rows}

    def group(self, vectors: Mapping[int, Vectors]) -> int:
        """Gives gaps their unit vectors, shape (dim,), and merges those that ask what an older one asks.

        Returns how many were merged away. Gaps that are gone, or were grouped meanwhile, are passed over.
        """
        with self._database.writing() as connection:
            known: dict[str, _Known] = {}
            return sum(self._group_one(connection, gap_id, vectors[gap_id], known) for gap_id in sorted(vectors))

    def _group_one(self, connection: sa.Connection, gap_id: int, vector: Vectors, known: dict[str, _Known]) -> bool:
        ungrouped = gaps.c.embedder.is_distinct_from(self._embedder)
        gap = connection.execute(sa.select(gaps).where(gaps.c.id == gap_id, ungrouped)).one_or_none()
        if gap is None:
            return False
        if gap.tenant not in known:
            known[gap.tenant] = _Known.load(connection, gap.tenant, self._embedder, len(vector))
        of_tenant = known[gap.tenant]
        if gap.resolved_at is None:  # what is resolved keeps its own record, and takes in what asks the same
            for row in nearest(vector, of_tenant.vectors, self._settings.group_above):
                other = of_tenant.ids[row]
                question = connection.execute(sa.select(gaps.c.question).where(gaps.c.id == other)).scalar_one()
                if not told_apart(gap.question, question):
                    _merge(connection, gap, into=other)
                    trim(connection, other, self._settings.max_askings)
                    return True
        stored = vector.astype(np.float16).tobytes()
        connection.execute(gaps.update().where(gaps.c.id == gap_id).values(vector=stored, embedder=self._embedder))
        of_tenant.add(gap_id, vector)
        return False


class _Known:
    """The gaps of one tenant that others may be grouped into, and their vectors as rows."""

    def __init__(self, ids: list[int], vectors: Vectors) -> None:
        self.ids = ids
        self.vectors = vectors

    @classmethod
    def load(cls, connection: sa.Connection, tenant: str, embedder: str, dimension: int) -> _Known:
        # Not into what an answer has closed: another wording that is declined shows that it is not answered for all.
        of_tenant = sa.and_(gaps.c.tenant == tenant, gaps.c.embedder == embedder, ~BY_ANSWER)
        rows = connection.execute(sa.select(gaps.c.id, gaps.c.vector).where(of_tenant).order_by(gaps.c.id)).all()
        fitting = [row for row in rows if len(row.vector) == 2 * dimension]
        flat = np.frombuffer(b"".join(row.vector for row in fitting), np.float16).astype(np.float32)
        return cls([row.id for row in fitting], flat.reshape(len(fitting), dimension))

    def add(self, gap_id: int, vector: Vectors) -> None:
        self.ids.append(gap_id)
        self.vectors = np.vstack([self.vectors, vector.astype(np.float32)])


def _merge(connection: sa.Connection, gap: sa.Row[tuple[object, ...]], *, into: int) -> None:
    later = gaps.c.last_seen < gap.last_seen
    connection.execute(
        gaps.update()
        .where(gaps.c.id == into)
        .values(
            count=gaps.c.count + gap.count,
            first_seen=sa.case((gaps.c.first_seen > gap.first_seen, gap.first_seen), else_=gaps.c.first_seen),
            last_seen=sa.case((later, gap.last_seen), else_=gaps.c.last_seen),
            reason=sa.case((later, gap.reason), else_=gaps.c.reason),
        )
    )
    connection.execute(askings.update().where(askings.c.gap_id == gap.id).values(gap_id=into))
    connection.execute(gaps.delete().where(gaps.c.id == gap.id))
