"""Settings from environment variables: ``ANSWER_MODELS__SYNTHESIZER__DTYPE`` is ``models.synthesizer.dtype``."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping

from serving.layering.keys import Path, allowed_at, names, sections

PREFIX = "ANSWER_"
BETWEEN = "__"

RESERVED: Mapping[str, str] = {
    "ANSWER_BEGAN": "when scripts/run began",
    "ANSWER_CI_MINUTES": "how long scripts/test may take",
    "ANSWER_CONFIG": "the --config of a command",
    "ANSWER_EVAL_DATA": "the folder of evaluation data",
    "ANSWER_PEER_ALCE": "a checkout of ALCE, whose code ours is compared with",
    "ANSWER_TEST_HOME": "the home of the cluster tests",
    "ANSWER_TEST_POSTGRES_URL": "the database of the PostgreSQL tests",
    "ANSWER_TORCH_INDEX": "a mirror of PyTorch's CPU index, for scripts/setup.sh",
    "ANSWER_URL": "the --url of a command",
    "ANSWER_VENV": "the environment of scripts/run",
}
"""Variables with our prefix that are no settings."""

# Kubernetes puts such variables into every pod, for each service of the namespace: one that is called `answer`, or
# begins so, must not stop the pod.
_SERVICE_LINK = re.compile(
    r"_SERVICE_HOST$|_SERVICE_PORT(_[A-Z0-9_]+)?$|_PORT$|_PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?$"
)


def variable(key: str) -> str:
    """The variable that sets the dotted ``key``."""
    return PREFIX + key.upper().replace(".", BETWEEN)


def settings_in(environ: Mapping[str, str]) -> Iterator[tuple[str, Path, str]]:
    """Each variable that sets something, with the path it sets and its text; sections before what is in them.

    Empty ones set nothing, as in ``ANSWER_HOME= answer up``. A path need not be known: ask :func:`unknown`.
    """
    found = []
    for name, text in environ.items():
        if not name.startswith(PREFIX) or name in RESERVED or not text:
            continue
        path = tuple(name.removeprefix(PREFIX).lower().split(BETWEEN))
        if not allowed_at(path) and _SERVICE_LINK.search(name):
            continue
        found.append((name, path, text))
    return iter(sorted(found, key=lambda one: (len(one[1]), one[0])))


def nearest_variable(name: str) -> str | None:
    """The variable that was probably meant, a setting or not."""
    known = [*map(variable, (*names(), *sections())), *RESERVED]
    flat = {_flat(one): one for one in known}
    if _flat(name) in flat:  # one underscore between parts, where two belong
        return flat[_flat(name)]
    last = name.rpartition(BETWEEN)[2].removeprefix(PREFIX)
    moved = [one for one in known if one.rpartition(BETWEEN)[2].removeprefix(PREFIX) == last]
    if len(moved) == 1:
        return moved[0]
    close = difflib.get_close_matches(_flat(name), flat, n=1, cutoff=0.75)
    return flat[close[0]] if close else None


def _flat(name: str) -> str:
    return re.sub("_+", "_", name)
