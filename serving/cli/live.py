"""An answer shown while it is written: each sentence once it is proven, and at the end what was not known before."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.text import Text

from serving.answer import grounding
from serving.answer.types import Outcome, Span, Support
from serving.answer.wire import Answer, RouteOut
from serving.cli.console import one_line, printable
from serving.cli.rendering import marked, render, render_sources
from serving.gateway.stream_events import PassagesOut, ProvenOut, Told

TITLES = 3


def show(events: Iterable[Told], out: Console, progress: Console) -> None:
    """Prints an answer's events as they come: its text to ``out``, the way there to ``progress``.

    What a terminal shows at the end is what :func:`~serving.cli.rendering.render` prints. Raises what the events raise.
    """
    answer: Answer | None = None
    sentences: list[str] = []
    with OnTerminal(out) if out.is_terminal else OnPipe(out) as text:
        for said in events:
            if isinstance(said, RouteOut):
                _tell(progress, f"{said.ran.value}: {said.cue}")
            elif isinstance(said, PassagesOut):
                _tell(progress, _found(said))
            elif isinstance(said, ProvenOut):
                sentences.append(_with_markers(said))
                text.show(" ".join(sentences))
            elif isinstance(said, Answer):
                answer = said
                if answer.outcome is Outcome.ANSWERED:
                    text.show(answer.marked_text)
    if answer is not None and answer.outcome is Outcome.ANSWERED:
        render_sources(answer, out)
    elif answer is not None:
        render(answer, out)


class OnTerminal:
    """A text that grows in place, wrapped anew each time."""

    def __init__(self, console: Console) -> None:
        self._live = Live(console=console, auto_refresh=False, redirect_stdout=False, redirect_stderr=False)

    def show(self, text: str) -> None:
        self._live.start()
        self._live.update(marked(text), refresh=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()


class OnPipe:
    """A text that grows at its end; what goes on otherwise begins anew under it."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._shown = ""

    def show(self, text: str) -> None:
        new = text[len(self._shown) :] if text.startswith(self._shown) else f"\n\n{text}"
        self._console.print(Text(printable(new)), end="", soft_wrap=True)
        self._shown = text

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown:
            self._console.print()


def _tell(progress: Console, line: str) -> None:
    progress.print(Text(one_line(line), style="dim"), soft_wrap=True)


def _found(said: PassagesOut) -> str:
    titles = [passage.title or passage.id for passage in said.passages]
    listed = ", ".join(titles[:TITLES]) + (", …" if len(titles) > TITLES else "")
    return f"{len(titles)} passage{'' if len(titles) == 1 else 's'}{': ' if titles else ''}{listed}"


def _with_markers(said: ProvenOut) -> str:
    chunks = tuple(citation.chunk for citation in said.citations)
    scores = tuple(citation.score for citation in said.citations)
    return grounding.insert(said.text, [Support(Span(0, len(said.text.encode())), chunks, scores)])
