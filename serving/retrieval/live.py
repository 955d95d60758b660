"""The index of a running server: the newest generation that can be opened, taken up without a restart."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

from serving.answer.errors import AnswerError
from serving.retrieval.generations import pointer
from serving.retrieval.index import HybridIndex

log = logging.getLogger("ray.serve")

Open = Callable[[Path, str | None], HybridIndex]


class LiveIndex:
    """Holds an open index; :meth:`refresh` takes up a newer one. Calls in flight keep the one they began with.

    ``clock`` gives seconds; a generation that cannot be opened is tried again after ``retry_s`` of them. Opening raises
    what :meth:`HybridIndex.open` does.
    """

    def __init__(
        self, root: Path, clock: Callable[[], float], *, opener: Open = HybridIndex.open, retry_s: float = 60.0
    ) -> None:
        self._root = root
        self._clock = clock
        self._open = opener
        self._retry_s = retry_s
        self._index = opener(root, None)
        self._failed: str | None = None
        self._again_at = 0.0

    @property
    def index(self) -> HybridIndex:
        return self._index

    def refresh(self) -> bool:
        """Takes up the generation that answers now. True when it is another than before.

        Cheap when nothing changed: one small file is read. A generation that cannot be opened, or that another embedder
        made, whose vectors this server's questions cannot be compared with, is left alone and the one before stays.
        """
        name = pointer(self._root)
        if name is None or name == self._index.folder.name:
            return False
        if name == self._failed and self._clock() < self._again_at:
            return False
        try:
            newer = self._open(self._root, self._index.manifest.embedder)
        except (AnswerError, OSError) as error:
            self._failed, self._again_at = name, self._clock() + self._retry_s
            log.warning("index generation %s stays: the new one cannot be used: %s", self._index.version, error)
            return False
        log.info("index generation %s takes the place of %s", newer.version, self._index.version)
        self._index, self._failed = newer, None
        return True
