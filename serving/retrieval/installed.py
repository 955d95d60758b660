"""The embedded corpus: text that is on every machine that can run this, so that there is something to ask at once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import Distribution, distributions

from serving.retrieval.documents import Document
from serving.retrieval.readmes import readme_document
from serving.retrieval.stdlib import stdlib_documents
from serving.retrieval.stdlib_modules import STDLIB_MODULES

PASSAGES_PER_DISTRIBUTION = 12
"""The beginning of a README says what a project is for; the rest is mostly reference, better in its documentation."""


@dataclass(slots=True)
class InstalledReport:
    """What the corpus holds. Complete when its documents have been read to the end."""

    distributions: int = 0
    without_readme: int = 0
    readme_passages: int = 0
    modules: int = 0
    stdlib_passages: int = 0


def installed_documents(
    report: InstalledReport,
    installed: Iterable[Distribution] | None = None,
    *,
    modules: Sequence[str] = STDLIB_MODULES,
    per_distribution: int = PASSAGES_PER_DISTRIBUTION,
) -> Iterator[Document]:
    """READMEs of ``installed`` (this environment when None), by name, then ``modules``, each with ready passages.

    A README gives at most ``per_distribution`` passages. Counts into ``report``.
    """
    for distribution in _by_name(distributions() if installed is None else installed):
        document = readme_document(distribution, per_distribution)
        report.distributions += 1
        if document is None:
            report.without_readme += 1
            continue
        report.readme_passages += len(document.ready or ())
        yield document
    report.modules = len(modules)
    for document in stdlib_documents(modules):
        report.stdlib_passages += len(document.ready or ())
        yield document


def _by_name(installed: Iterable[Distribution]) -> list[Distribution]:
    """In order of name; one that is found twice on the path counts where Python would import it from, first."""
    named: dict[str, Distribution] = {}
    for distribution in installed:
        name = distribution.metadata["Name"]
        if name:
            named.setdefault(re.sub(r"[-_.]+", "-", name).lower(), distribution)
    return [named[name] for name in sorted(named)]
