"""An index for measures that need one and are told of none."""

from __future__ import annotations

from pathlib import Path

from serving.answer.errors import IndexMissingError
from serving.cli.console import Steps
from serving.cli.indexing import embedder_name, index_given
from serving.retrieval.changes import Given
from serving.retrieval.index import HybridIndex
from serving.retrieval.installed import InstalledReport, installed_documents
from serving.settings import Settings

MODULES = ("itertools", "functools", "shutil", "heapq", "json", "contextlib", "random", "textwrap", "os", "bisect")
"""What the small index holds, with these: the questions' modules and some that are like them."""
MORE_MODULES = ("builtins", "collections", "operator", "datetime", "pathlib", "statistics", "string")


def indexed(settings: Settings, folder: Path, steps: Steps) -> Settings:
    """The settings, with a small index in ``folder`` when theirs holds none that can be searched."""
    try:
        HybridIndex.open(settings.index_path, embedder_name(settings))
    except IndexMissingError as error:
        steps.say(f"{error.message}; measuring over a small index of the standard library in {folder}")
        small = settings.model_copy(update={"index": folder})
        documents = installed_documents(InstalledReport(), (), modules=(*MODULES, *MORE_MODULES))
        index_given([Given("the standard library", documents)], small, steps, replace=True)
        return small
    return settings
