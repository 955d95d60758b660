"""What a generation says of itself."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

FORMAT = 1
"""Version of the layout and of the analysis of terms. An index of another version has to be built again."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """``generation`` is a hash of the passages in order, the corpus description and the embedder's name.

    Vectors are no part of it (they differ in the last bits from machine to machine), so ``embedder`` must change
    when the weights do. ``dimension`` counts the numbers of a vector; ``built_at`` is in UTC.
    """

    format: int
    generation: str
    passages: int
    embedder: str
    dimension: int
    built_at: datetime
    corpus: str

    def to_json(self) -> str:
        return json.dumps(asdict(self), default=datetime.isoformat, indent=2, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Manifest:
        """Raises ``ValueError`` when the text is no manifest, or one of another format, and says which."""
        fields: Any = json.loads(text)
        version = fields.get("format") if isinstance(fields, dict) else None
        if version != FORMAT:
            raise ValueError(f"its format is {version!r}, and this version reads {FORMAT}")
        try:
            return cls(**{**fields, "built_at": datetime.fromisoformat(fields["built_at"])})
        except (KeyError, TypeError) as error:
            raise ValueError(f"the manifest has missing or unknown fields ({error})") from error
