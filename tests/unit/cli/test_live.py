"""What ``answer ask`` shows while an answer is written, and that nothing is left when it is broken off."""

from __future__ import annotations

import asyncio
import io
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Iterator
from typing import Any

import pytest
from rich.console import Console

from serving.answer.errors import DeadlineExceededError, OverloadedError
from serving.answer.events import Event
from serving.answer.types import Citation
from serving.answer.wire import Answer
from serving.cli import client
from serving.cli.client import ServerError
from serving.cli.live import show
from serving.cli.rendering import render
from serving.gateway.http import create_api
from serving.gateway.stream_events import MarkedCitation, ProvenOut, Told, told
from tests.unit.gateway.fakes import FakeBackend, answered, declined, events_of, searched

from .test_cli import answer, listening, reason
from .test_rendering import ESCAPE_CODES, HOSTILE, STEERING

QUESTION = "What does chain do?"
CURSOR = re.compile(r"\x1b\[\??[0-9]*[A-Za-z]|\r")


def console(out: io.StringIO, *, terminal: bool) -> Console:
    colours: Any = "standard" if terminal else "auto"
    return Console(file=out, highlight=False, force_terminal=terminal, width=60, color_system=colours)


def said_on_the_way_to(answer: Answer) -> list[Told]:
    return [told(event) for event in events_of(answer)]


def shown(events: list[Told], *, terminal: bool = False) -> tuple[str, str]:
    out, progress = io.StringIO(), io.StringIO()
    show(iter(events), console(out, terminal=terminal), console(progress, terminal=False))
    return out.getvalue(), progress.getvalue()


def rendered(answer: Answer, *, terminal: bool = False) -> str:
    out = io.StringIO()
    render(answer, console(out, terminal=terminal))
    return out.getvalue()


ANSWERS = [answered(), declined(), searched("r1"), answered(text="Words " * 40 + "end."), answered(text=f"{HOSTILE}.")]


@pytest.mark.parametrize("answer", ANSWERS)
def test_what_stands_at_the_end_is_what_is_rendered_without_a_stream(answer: Answer) -> None:
    out, progress = shown(said_on_the_way_to(answer))
    assert out == rendered(answer)
    assert progress.startswith(f"{answer.route.ran.value}: {answer.route.cue}\n")


@pytest.mark.parametrize("answer", ANSWERS)
def test_a_terminal_is_left_with_the_same(answer: Answer) -> None:
    out, _ = shown(said_on_the_way_to(answer), terminal=True)
    assert CURSOR.sub("", ESCAPE_CODES.sub("", out)).endswith(ESCAPE_CODES.sub("", rendered(answer, terminal=True)))
    assert STEERING.findall(CURSOR.sub("", ESCAPE_CODES.sub("", out))) == []


def claim(text: str, *chunks: int) -> ProvenOut:
    return ProvenOut(text=text, citations=tuple(MarkedCitation.of(Citation(chunk, 0.9)) for chunk in chunks))


def test_a_sentence_is_shown_with_its_markers_before_the_answer_is_there() -> None:
    out = io.StringIO()
    seen: list[str] = []

    def events() -> Iterator[Told]:
        for one in (claim("Chain chains.", 0), claim("It stops at the end.", 1, 2), claim("See \u2028[red].", 0)):
            yield one
            seen.append(out.getvalue())

    show(events(), console(out, terminal=False), console(io.StringIO(), terminal=False))
    assert seen == [
        "Chain chains [1].",
        "Chain chains [1]. It stops at the end [2][3].",
        "Chain chains [1]. It stops at the end [2][3]. See \u2028[red] [1].",
    ]


def test_a_layout_that_the_sentences_did_not_have_is_shown_whole() -> None:
    answer = answered().model_copy(update={"marked_text": "- Chain makes one iterator of many [1]."})
    out, _ = shown(said_on_the_way_to(answer))
    assert out.startswith("Chain makes one iterator of many [1].\n\n- Chain makes one iterator of many [1].\n\n[1] ")


def test_passages_are_counted_and_named() -> None:
    _, progress = shown(said_on_the_way_to(answered()))
    assert progress.splitlines()[1] == "1 passage: itertools.chain"
    _, progress = shown(said_on_the_way_to(searched("r1")))
    assert progress.splitlines()[1] == "0 passages"


def test_what_was_shown_stays_when_the_rest_fails() -> None:
    def events() -> Iterator[Told]:
        yield claim("Chain chains.", 0)
        raise ServerError("gone")

    for terminal in (False, True):
        out = io.StringIO()
        with pytest.raises(ServerError):
            show(events(), console(out, terminal=terminal), console(io.StringIO(), terminal=False))
        assert CURSOR.sub("", ESCAPE_CODES.sub("", out.getvalue())).endswith("Chain chains [1].\n")


# Over HTTP


class FakeStreamingBackend(FakeBackend):
    """Says ``events_are``, then raises ``then``, or waits for ever when there is nothing to raise."""

    events_are: list[Event]
    then: Exception | None
    left: bool

    async def events(self, question: str, *, request_id: str, timeout_s: float) -> AsyncGenerator[Event, None]:
        self.asked.append((question, request_id, timeout_s))
        try:
            for event in self.events_are:
                yield event
            if self.then is not None:
                raise self.then
            await asyncio.sleep(60)
        except (asyncio.CancelledError, GeneratorExit):
            self.left = True
            raise


@pytest.fixture(scope="module")
def backend() -> FakeStreamingBackend:
    return FakeStreamingBackend()


@pytest.fixture(scope="module")
def shared_url(backend: FakeStreamingBackend) -> Iterator[str]:
    with listening(create_api(backend, default_timeout_s=9, max_body_bytes=10_000, max_question_chars=100)) as url:
        yield url


@pytest.fixture
def url(shared_url: str, backend: FakeStreamingBackend) -> str:
    backend.asked, backend.left = [], False
    backend.events_are, backend.then = events_of(answered()), None
    return shared_url


def test_a_stream_is_read_to_its_answer(url: str, backend: FakeStreamingBackend) -> None:
    assert list(client.stream(url, QUESTION, 33.0)) == said_on_the_way_to(answered())
    assert [(question, timeout) for question, _, timeout in backend.asked] == [(QUESTION, 33.0)]


def test_ask_streams_when_told_to(url: str, backend: FakeStreamingBackend) -> None:
    result = answer("ask", QUESTION, "--url", url, "--stream")
    assert result.exit_code == 0
    assert result.stdout == rendered(answered())
    assert result.stderr == "single_pass: question word\n1 passage: itertools.chain\n"
    assert len(backend.asked) == 1


@pytest.mark.parametrize("arguments", [(), ("--no-stream",), ("--json",), ("--json", "--stream")])
def test_ask_does_not_stream_to_a_pipe_nor_json(url: str, arguments: tuple[str, ...]) -> None:
    result = answer("ask", QUESTION, "--url", url, *arguments)
    assert result.exit_code == 0
    assert result.stderr == ""
    if "--json" in arguments:
        assert Answer.model_validate_json(result.stdout).text == answered().text
    else:
        assert result.stdout == rendered(answered())


def test_an_error_before_the_first_event_is_one_line(url: str, backend: FakeStreamingBackend) -> None:
    backend.events_are, backend.then = [], OverloadedError("too much is waiting")
    assert "too much is waiting (overloaded, request " in reason(answer("ask", QUESTION, "--url", url, "--stream"))


def test_an_error_in_the_stream_is_said_after_what_was_shown(url: str, backend: FakeStreamingBackend) -> None:
    backend.events_are, backend.then = events_of(answered())[:3], DeadlineExceededError("the deadline passed")
    result = answer("ask", QUESTION, "--url", url, "--stream")
    assert result.exit_code == 1
    assert result.stdout == "Chain makes one iterator of many [1].\n"
    assert result.stderr.splitlines()[-1].startswith("answer: the deadline passed (deadline_exceeded, request ")


def served(*chunks: bytes, kind: str = "text/event-stream", status: int = 200) -> Any:
    async def app(_scope: object, _receive: object, send: Any) -> None:
        await send({"type": "http.response.start", "status": status, "headers": [(b"content-type", kind.encode())]})
        for chunk in chunks:
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    return app


@pytest.mark.parametrize(
    ("app", "said"),
    [
        (served(), "hung up"),
        (served(b'event: route\ndata: {"chosen":"search","ran":"search","cue":"x"}\n\n: keep-alive\n\n'), "hung up"),
        (served(b"event: later\ndata: {}\n\n"), "hung up"),  # what a later version adds is passed over
        (served(b"event: route\ndata: {}\n\n"), "no answer engine of this version"),
        (served(b"event: route\ndata: <\n\n"), "no answer engine of this version"),
        (served(b"event: error\ndata: []\n\n"), "no answer engine of this version"),
        (served(b"<html>", kind="text/html"), "no answer engine of this version"),
        (served(b"<html>", kind="text/html", status=502), "the server answered 502"),
    ],
)
def test_a_stream_of_another_kind_of_server(app: Any, said: str) -> None:
    with listening(app) as address, pytest.raises(ServerError, match=said):
        list(client.stream(address, QUESTION, 5.0))


def test_ctrl_c_on_a_terminal_hangs_up_and_exits_130(url: str, backend: FakeStreamingBackend) -> None:
    backend.events_are = events_of(answered())[:3]  # and then nothing more
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "serving.cli.main", "ask", QUESTION, "--url", url]
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "80"}
    asking = subprocess.Popen(command, stdout=theirs, stderr=subprocess.PIPE, env=environment)
    try:
        os.close(theirs)
        seen = read_until(ours, b"iterator of many", 60)
        assert not backend.left
        asking.send_signal(signal.SIGINT)
        _, errors = asking.communicate(timeout=30)
        assert asking.returncode == 130, errors
        assert b"Traceback" not in errors
        assert b"single_pass: question word" in errors
        deadline = time.monotonic() + 10
        while not backend.left and time.monotonic() < deadline:
            time.sleep(0.01)
        assert backend.left
        seen += read_until(ours, None, 1)
        assert b"\x1b[?25h" in seen  # the cursor is back
    finally:
        if asking.poll() is None:
            asking.kill()
        os.close(ours)


def read_until(terminal: int, wanted: bytes | None, seconds: float) -> bytes:
    """What a terminal is sent, until it has been sent that; None reads what there is."""
    seen, deadline = b"", time.monotonic() + seconds
    while wanted is None or wanted not in seen:
        if not select.select([terminal], [], [], max(0.0, deadline - time.monotonic()))[0]:
            break
        try:
            seen += os.read(terminal, 65_536)
        except OSError:  # the other end is closed
            break
    assert wanted is None or wanted in seen, seen
    return seen
