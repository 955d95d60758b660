"""``answer index --remove``, ``--list``, ``--verify``: what is in the index, and whether it is whole."""

from __future__ import annotations

import json as json_module
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import groupby

from serving.cli.console import Steps, fail, printable
from serving.cli.indexing import embed as embed_rest
from serving.cli.indexing import said, summary, waiting
from serving.retrieval.changes import Changes
from serving.retrieval.manifest import Manifest
from serving.settings import Settings


def run(
    settings: Settings, steps: Steps, *, remove: Sequence[str] | None, embed: bool, verify: bool, json: bool
) -> None:
    """Does the one thing that was asked for; lists when nothing else was."""
    if remove:
        remove_named(remove, settings, steps)
    elif embed:
        embed_rest(settings, steps)
    elif verify:
        faults = verified(settings, steps)
        if faults:
            fail("; ".join(faults))
    else:
        print_list(settings, json=json)


def print_list(settings: Settings, *, json: bool) -> None:
    """Sources, each with its documents; as JSON, a line for each document."""
    if json:
        for each in listed(settings):
            sys.stdout.write(json_module.dumps(each) + "\n")
        return
    for source, documents in groupby(listed(settings), key=lambda each: each["source"]):
        sys.stdout.write(f"{printable(str(source))}\n")
        for each in documents:
            published = str(each["published_at"] or "")[:10] or "undated"
            row = f"  {each['passages']:>6}  {published:<10}  {each['indexed_at']}  {each['fingerprint']:.12}  "
            sys.stdout.write(f"{row}{printable(str(each['document']))}\n")


def remove_named(names: Sequence[str], settings: Settings, steps: Steps) -> Manifest:
    """Removes documents by key, source or path. Raises ``ValueError`` when a name names none."""
    from serving.retrieval.updating import remove as remove_documents

    def work(timeout_s: float) -> tuple[Manifest, Changes]:
        return remove_documents(settings.index_path, names, now=datetime.now(UTC), lock_timeout_s=timeout_s)

    manifest, changes = waiting(steps, work)
    steps.say(f"{said(changes)}; {summary(manifest)} in {settings.index_path}")
    return manifest


def listed(settings: Settings) -> Iterator[dict[str, str | int | None]]:
    """The documents of the index that answers, by source."""
    from serving.retrieval.catalogue import Catalogue
    from serving.retrieval.generations import CATALOGUE
    from serving.retrieval.index import HybridIndex

    index = HybridIndex.open(settings.index_path)
    with Catalogue(index.folder / CATALOGUE) as catalogue:
        for record in catalogue:
            yield {
                "document": record.location,
                "source": record.source,
                "title": record.title,
                "url": record.url,
                "given": record.scope,
                "passages": record.passages,
                "published_at": record.published_at,
                "indexed_at": record.indexed_at,
                "fingerprint": record.fingerprint,
            }


def verified(settings: Settings, steps: Steps) -> list[str]:
    """Reads the whole index; what is wrong with it, each with the command that mends it."""
    from serving.retrieval.verifying import verify as verify_index

    manifest, faults = verify_index(settings.index_path, steps.every)
    steps.say(f"{'damaged' if faults else 'whole'}: {summary(manifest)} in {settings.index_path}")
    return [str(fault) for fault in faults]
