"""A passage as stored bytes and back, every field kept, and the text that is embedded for it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime

from serving.answer.types import Passage


def passage_id(source: str, source_path: str | None, heading_path: Sequence[str], text: str) -> str:
    """Sixteen hexadecimal digits that identify a passage by where it stands and what it says."""
    # JSON keeps the fields apart: ("ab", "c") and ("a", "bc") must differ.
    origin = json.dumps([source, source_path, list(heading_path), text])
    return hashlib.sha256(origin.encode()).hexdigest()[:16]


def encode(passage: Passage) -> bytes:
    """JSON without the score, which belongs to a query. The same passage always gives the same bytes."""
    fields = asdict(passage)
    del fields["score"]
    return json.dumps(fields, sort_keys=True, default=datetime.isoformat).encode()


def decode(record: bytes) -> Passage:
    """The passage that :func:`encode` wrote. Raises ``ValueError``, ``KeyError`` or ``TypeError`` for anything else."""
    fields = json.loads(record)
    fields["heading_path"] = tuple(fields["heading_path"])
    if fields["published_at"] is not None:
        fields["published_at"] = datetime.fromisoformat(fields["published_at"])
    return Passage(**fields)


def embedding_text(passage: Passage) -> str:
    """What is embedded for a passage: title, headings and text, each on its own line and nothing said twice."""
    lines = dict.fromkeys([passage.title, *passage.heading_path, passage.text])
    return "\n".join(line for line in lines if line)
