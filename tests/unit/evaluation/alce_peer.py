"""ALCE's own ``eval.py``, run where a checkout of it lies: the peer of the legacy mode. Nothing of it is kept here.

``ANSWER_PEER_ALCE=CHECKOUT python -m tests.unit.evaluation.alce_peer`` runs it on the cases of ``alce_cases`` and
writes the numbers it gives to ``alce_golden.json`` beside this file.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import MagicMock, patch

from serving.evaluation.alce import Item
from tests.unit.evaluation.alce_cases import Case, cases, coin, split

VARIABLE = "ANSWER_PEER_ALCE"
GOLDEN = Path(__file__).with_name("alce_golden.json")
HOW_TO = f"set {VARIABLE} to a checkout of princeton-nlp/ALCE to compare with the original itself"

_MODELS = ("torch", "transformers", "nltk", "rouge_score")
"""What the original imports for metrics that are not asked for here; its splitter and its grader are replaced."""
_EVERY = 10**6
_SHARE = re.compile(r"(\d+\.\d+)%")

Figures = dict[str, Any]


class Peer:
    """The original's main program, with a grader and a splitter of ours."""

    def __init__(self, checkout: Path) -> None:
        with _beside(checkout), patch.dict(sys.modules, {name: MagicMock() for name in _MODELS}):
            self._program = _load(checkout / "eval.py")
            sys.modules.pop("utils", None)
        self._program.autoais_model = object()  # what keeps it from loading one

    def figures(
        self,
        items: Sequence[Item],
        entails: Callable[[str, str], int],
        *,
        at_most: int | None = 3,
        qampari: bool = False,
    ) -> Figures:
        """What the original writes for these items, and the shares that it prints of sentences citing more than once.

        The shares are (cite several, of those supported, of those citations found irrelevant) in percent, two decimals;
        None where it prints none.
        """
        self._program._run_nli_autoais = entails
        self._program.sent_tokenize = split
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / ("qampari.json" if qampari else "items.json")
            path.write_text(json.dumps({"data": [_plain(item) for item in items]}))
            limit = str(_EVERY if at_most is None else at_most)
            arguments = ["eval", "--f", str(path), "--no_rouge", "--citations", "--at_most_citations", limit]
            said = io.StringIO()
            with patch.object(sys, "argv", arguments), contextlib.redirect_stdout(said):
                self._program.main()
            written: Figures = json.loads(Path(f"{path}.score").read_text())
        shares = [float(share) for share in _SHARE.findall(said.getvalue())]
        kept = ("length", "str_em", "str_hit", "citation_rec", "citation_prec")
        return {**{name: written[name] for name in kept}, "shares": shares or None}


def found() -> Peer | None:
    """The peer, where ``ANSWER_PEER_ALCE`` names a checkout."""
    named = os.environ.get(VARIABLE)
    return Peer(Path(named)) if named else None


def run(peer: Peer, case: Case) -> Figures:
    return peer.figures(case.items, coin, at_most=case.at_most, qampari=case.qampari)


def _plain(item: Item) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "question": item.question,
        "output": item.output,
        "docs": [{"title": doc.title, "text": doc.text} for doc in item.docs],
        "answers": [["x"]],
    }
    if item.answers is not None:
        plain["qa_pairs"] = [{"short_answers": list(reading)} for reading in item.answers]
    return plain


@contextlib.contextmanager
def _beside(checkout: Path) -> Iterator[None]:
    """The checkout's own modules can be imported within."""
    with patch.object(sys, "path", [str(checkout), *sys.path]):
        yield


def _load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("alce_eval", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise FileNotFoundError(f"{path} does not exist; {HOW_TO}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    original = found()
    if original is None:
        sys.exit(HOW_TO)
    golden = {case.name: run(original, case) for case in cases()}
    GOLDEN.write_text(json.dumps(golden, indent=1) + "\n")
    sys.stdout.write(f"{len(golden)} cases written to {GOLDEN}\n")
