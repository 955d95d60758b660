"""Questions about what is installed here and the standard library; any one accepted string shows a right answer."""

from __future__ import annotations

from typing import NamedTuple


class Question(NamedTuple):
    text: str
    accepted: tuple[str, ...]


ANSWERABLE = (
    Question("What does itertools.chain do?", ("elements from the first iterable until it is exhausted",)),
    Question("What does functools.reduce do?", ("reduce the iterable to a single value",)),
    Question("What does shutil.rmtree do?", ("delete a directory tree",)),
    Question("How does heapq.merge combine sorted inputs?", ("single sorted output",)),
    Question("What does json.dumps return?", ("JSON formatted",)),
    Question("What does contextlib.suppress do?", ("suppress specified exceptions",)),
    Question("What does random.shuffle do?", ("Shuffle list x in place",)),
    Question("What does textwrap.dedent do?", ("common leading whitespace",)),
    Question("What is uvicorn?", ("ASGI web server",)),
    Question("What is the tqdm package for?", ("progress bar", "progress meter", "smart progress")),
)

UNANSWERABLE = (
    "Who won the 1954 chess olympiad?",
    "What is the boiling point of tungsten?",
    "When was the Battle of Hastings fought?",
    "Which river flows through Budapest?",
    "How do I bake sourdough bread?",
)
