"""Changes to the index by content: what is new or different is read in, what has gone goes, the rest is left alone."""

from __future__ import annotations

import os
import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from pathlib import Path

from serving.answer.errors import IndexMissingError
from serving.retrieval.catalogue import Record
from serving.retrieval.changes import Changes, Given
from serving.retrieval.documents import Document, Skipped
from serving.retrieval.draft import Base, Draft, plain
from serving.retrieval.generations import CATALOGUE, build_lock, building_folder, pointer
from serving.retrieval.index import HybridIndex
from serving.retrieval.manifest import Manifest

Progress = Callable[[int, int], None]
"""Told how many documents are read, and how many passages were indexed of them."""


def update(
    root: Path,
    given: Iterable[Given],
    *,
    embedder_name: str,
    now: datetime,
    progress: Progress,
    replace: bool = False,
    lock_timeout_s: float = 30.0,
) -> tuple[Manifest, Changes]:
    """Brings the index under ``root`` up to date with ``given`` and lets it answer, by words; embeddings come after.

    ``embedder_name`` must change when the embedder's weights do: vectors of another one are dropped. ``replace``
    forgets everything that was there. Memory holds one document at a time. An error, whoever raises it, leaves the
    generation that answered as it was.

    Raises ``ValueError`` when nothing at all was found; :class:`~serving.answer.errors.IndexMissingError` when what is
    there cannot be read, so that only ``replace`` helps; and
    :class:`~serving.answer.errors.IndexLockedError` when another process writes for longer than
    ``lock_timeout_s`` seconds.
    """
    changes = Changes()
    with build_lock(root, lock_timeout_s), building_folder(root) as folder:
        base = None if replace else current_base(root)
        with Draft(folder, base, lineage=secrets.token_hex(8), embedder=embedder_name, now=now) as draft:
            repeats: Counter[str] = Counter()
            for one in given:
                _take(one, draft, changes, repeats, progress)
            if not changes.read:
                raise ValueError(
                    "nothing to index: no text was found. Name files or folders with text, or use --installed"
                )
            return (draft.publish(root) if draft.changed or base is None else base.manifest), changes


def remove(
    root: Path, names: Sequence[str], *, now: datetime, lock_timeout_s: float = 30.0
) -> tuple[Manifest, Changes]:
    """Removes the documents that ``names`` name: by key, by source, or by a path at or above where they lie.

    Raises ``ValueError`` when one names nothing, and then removes nothing; and as :func:`update`.
    """
    changes = Changes()
    with build_lock(root, lock_timeout_s), building_folder(root) as folder:
        base = current_base(root)
        if base is None:
            raise IndexMissingError("there is no index, so there is nothing to remove")
        embedder = base.manifest.embedder
        with Draft(folder, base, lineage=base.manifest.lineage, embedder=embedder, now=now) as draft:
            found: dict[int, Record] = {}
            for name in names:
                matching = draft.catalogue.matching(plain(name), plain(os.path.abspath(name)))
                if not matching:
                    raise ValueError(f"nothing in the index is called {name}: see `answer index --list`")
                found.update((record.number, record) for record in matching)
            for record in found.values():
                draft.remove(record)
            changes.removed = len(found)
            return draft.publish(root), changes


def current_base(root: Path) -> Base | None:
    """The generation that answers; None where there was never one."""
    if pointer(root) is None and not (root / "CURRENT").exists():
        return None
    index = HybridIndex.open(root)
    if CATALOGUE not in index.manifest.files:
        raise IndexMissingError("the index has no catalogue")
    return Base(index.folder, index.manifest)


def _take(given: Given, draft: Draft, changes: Changes, repeats: Counter[str], progress: Progress) -> None:
    for item in given.items:
        if isinstance(item, Skipped):
            changes.skipped += 1
            continue
        _put(given, item, draft, changes, repeats)
        progress(changes.read, changes.passages)
    for record in draft.catalogue.unseen(plain(given.scope)):
        draft.remove(record)
        changes.removed += 1


def _put(given: Given, document: Document, draft: Draft, changes: Changes, repeats: Counter[str]) -> None:
    key = plain(document.key)
    if not draft.catalogue.see(key):
        if document.place is not None:
            return  # the same place, given twice
        # Two of one name, which is all that is known of them: told apart by their order.
        repeats[key] += 1
        key = f"{key}#{repeats[key] + 1}"
        draft.catalogue.see(key)
    fingerprint = document.fingerprint
    known = draft.catalogue.get(key)
    if known and known.fingerprint == fingerprint:
        changes.unchanged += 1
        return
    if known:
        draft.remove(known)
        changes.updated += 1
    else:
        changes.added += 1
    changes.passages += draft.add(document, key, fingerprint, scope=plain(given.scope))
