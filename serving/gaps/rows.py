"""Between the tables' rows and the backlog's values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from serving.answer.wire import Versions
from serving.gaps.records import Asking, AskingOut, GapOut, PassageRef, Resolution, State


def row_of(asking: Asking) -> dict[str, Any]:
    """An asking's row, but for its gap."""
    return {
        "key": asking.key,
        "question": asking.question,
        "question_hash": asking.question_hash,
        "asked_at": asking.asked_at,
        "request_id": asking.request_id,
        "reason": asking.reason.value,
        "cause": asking.cause.value if asking.cause else None,
        "route_chosen": asking.route_chosen.value,
        "route_ran": asking.route_ran.value,
        "versions": asking.versions.model_dump(),
        "passages": [[passage.id, passage.score] for passage in asking.passages],
    }


def asking_of(row: Mapping[str, Any]) -> AskingOut:
    names = AskingOut.model_fields.keys() - {"passages", "versions"}
    return AskingOut(
        **{name: row[name] for name in names},
        versions=versions_of(row["versions"]),
        passages=tuple(PassageRef(id=found, score=score) for found, score in row["passages"]),
    )


def versions_of(stored: Mapping[str, str]) -> Versions:
    """Versions that this or another release stored; parts that this one does not know are left out."""
    return Versions(**{name: value for name, value in stored.items() if name in Versions.model_fields})


def gap_of(row: Mapping[str, Any], latest: AskingOut | None) -> GapOut:
    """A gap's value, of its row and its latest asking."""
    closed, answered = row["resolved_at"], row["answered_versions"]
    return GapOut(
        **{name: row[name] for name in ("id", "question", "question_hash", "count", "first_seen", "last_seen")},
        state=State.OPEN if closed is None else State.RESOLVED,
        tenant=row["tenant"] or None,
        retried_at=row["retried_at"],
        resolution=closed
        and Resolution(
            at=closed,
            note=row["note"],
            answered_request_id=row["answered_request_id"],
            answered_versions=None if answered is None else versions_of(answered),
        ),
        latest=latest,
    )
