"""Asking gaps again. What comes of each is stored before the next is asked, so stopping at any moment loses nothing."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import UTC, datetime

from serving.answer.types import Outcome
from serving.cli import client
from serving.cli.console import Steps, one_line
from serving.gaps.errors import UnknownGapError
from serving.gaps.records import RETRY_PREFIX
from serving.gaps.store import GapStore

PATIENCE = 3
"""So many failures in a row mean that the server is broken, not the question."""


def retry_gaps(
    store: GapStore, ids: Sequence[int] | None, *, url: str, limit: int, timeout_s: float, steps: Steps
) -> bool:
    """Asks gaps (None: the open ones) at a server and closes what is answered. Whether every question was judged."""
    waiting = store.to_retry(ids, limit=limit)
    asked = [(gap_id, question) for gap_id, question in waiting if question is not None]
    if len(asked) < len(waiting):
        steps.say(f"{len(waiting) - len(asked)} gaps cannot be asked again: only their question's hash is kept")
    closed = declined = failed = in_a_row = 0
    try:
        for number, (gap_id, question) in enumerate(asked, start=1):
            steps.say(f"{number}/{len(asked)}: gap {gap_id}: {one_line(question)[:80]}")
            try:
                answered = _retry_one(store, gap_id, question, url=url, timeout_s=timeout_s)
            except (client.ServerError, UnknownGapError) as error:
                steps.say(f"  {error}")
                failed += 1
                in_a_row += 1
                if in_a_row == PATIENCE:
                    steps.say(f"stopped after {PATIENCE} failures in a row; run it again when the server is well")
                    break
                continue
            in_a_row = 0
            closed += answered
            declined += not answered
            steps.say("  answered: closed" if answered else "  still open")
    except KeyboardInterrupt:
        steps.say("interrupted; the next run goes on with those that were not asked")
        failed += 1
    steps.say(f"{closed} answered and closed, {declined} still open, {failed} failed, of {len(asked)}")
    return not failed


def _retry_one(store: GapStore, gap_id: int, question: str, *, url: str, timeout_s: float) -> bool:
    """Whether the question is answered now; then its gap is closed, with the answer's request id and versions."""
    answer = client.ask(url, question, timeout_s, request_id=f"{RETRY_PREFIX}{gap_id}-{uuid.uuid4().hex[:12]}")
    now = datetime.now(UTC)
    if answer.outcome is not Outcome.ANSWERED:
        store.retried(gap_id, at=now)
        return False
    store.resolve(gap_id, at=now, answered_request_id=answer.request_id, answered_versions=answer.versions)
    return True
