"""A tokenizer that reads everything in a text as text, special tokens too."""

from __future__ import annotations

import json
from typing import Any

from tokenizers import Tokenizer

_NOWHERE = "\0"
"""No text has this character once it is readable."""


def plain_reader(tokenizer: Any) -> Tokenizer:
    """A copy of a (fast) transformers tokenizer's backend that neither pads nor cuts, and makes no special token of
    what is written in a text. What goes around a text is as it was.

    A unigram model has its special tokens among the pieces that words are made of, so there it is not enough that they
    are not looked for.
    """
    written = json.loads(tokenizer.backend_tokenizer.to_str())
    if written["model"]["type"] == "Unigram":
        special = {token["content"] for token in written["added_tokens"] if token["special"]}
        written["added_tokens"] = [token for token in written["added_tokens"] if not token["special"]]
        for piece in written["model"]["vocab"]:
            if piece[0] in special:
                piece[0] = _NOWHERE + piece[0]
    plain = Tokenizer.from_str(json.dumps(written))
    plain.no_padding()
    plain.no_truncation()
    plain.encode_special_tokens = True
    return plain
