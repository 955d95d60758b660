"""What reading did: documents counted, and each file that was passed over counted by reason and written to a report."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TextIO

from serving.retrieval.documents import Item, Skipped, SkipReason

_SAID = {
    SkipReason.OTHER_TYPE: "of another type",
    SkipReason.TOO_LARGE: "too large",
    SkipReason.BINARY: "binary",
    SkipReason.BAD_ENCODING: "in a bad encoding",
    SkipReason.EMPTY: "empty",
    SkipReason.UNREADABLE: "unreadable",
    SkipReason.BAD_ROW: "bad rows",
}


@dataclass(slots=True)
class Tally:
    """Documents, and what was passed over by reason with the first example of each. Complete when reading is."""

    documents: int = 0
    skipped: Counter[SkipReason] = field(default_factory=Counter)
    examples: dict[SkipReason, Skipped] = field(default_factory=dict)

    def summary(self) -> str:
        """One line for people: ``12 documents; passed over: 2 binary (such as a.md: a zero byte), 1 empty (b.md)``."""
        said = f"{self.documents} document{'' if self.documents == 1 else 's'}"
        parts = [
            f"{self.skipped[reason]} {_SAID[reason]} ({self._example(reason)})"
            for reason in SkipReason
            if self.skipped[reason]
        ]
        return said + (f"; passed over: {', '.join(parts)}" if parts else "")

    def _example(self, reason: SkipReason) -> str:
        example = self.examples[reason]
        lead = "" if self.skipped[reason] == 1 else "such as "
        return f"{lead}{example.path}" + (f": {_short(example.detail)}" if example.detail else "")


def _short(detail: str) -> str:
    return detail if len(detail) <= 80 else f"{detail[:79]}…"


def tallied(items: Iterable[Item], tally: Tally, report: TextIO | None = None) -> Iterator[Item]:
    """The same items. Each skip is written to ``report`` as it comes: a JSON line with path, reason and detail."""
    for item in items:
        if isinstance(item, Skipped):
            tally.skipped[item.reason] += 1
            tally.examples.setdefault(item.reason, item)
            if report is not None:
                line = {"path": item.path, "reason": item.reason.value, "detail": item.detail}
                report.write(json.dumps(line, ensure_ascii=False) + "\n")
        else:
            tally.documents += 1
        yield item
