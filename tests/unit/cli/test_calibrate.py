"""``answer calibrate``, as a person runs it, over scripted scores; and that these are what the engine's floor sees."""

from __future__ import annotations

import asyncio
import json
import math
import os
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import Result
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image
from rich.cells import cell_len
from typer.testing import CliRunner

from serving.answer.errors import OverloadedError
from serving.answer.policy import Policy
from serving.answer.types import Deadline, DeclineReason, Phases
from serving.cli import main, scoring
from serving.cli.floor_report import NOT_THE_GATE, bar
from serving.cli.scoring import Scorer, best_passage
from serving.evaluation.rows import AnswerabilityRow, QaPassage
from tests.unit.answer.fakes import FakeRetriever
from tests.unit.answer.test_engine import PASSAGES, ask, parts
from tests.unit.retrieval.fakes import FakeEmbedder


class ScriptedReranker:
    """Scores the passages of a question ``0.61 …`` at most 0.61; raises what it is told to instead of any word."""

    def __init__(self, raises: dict[str, BaseException] | None = None) -> None:
        self._raises = raises or {}
        self.asked: list[str] = []
        self.documents: list[list[str]] = []

    async def score(self, query: str, documents: Sequence[str], *, deadline: Deadline) -> list[float]:
        self.asked.append(query)
        self.documents.append(list(documents))
        for word, error in self._raises.items():
            if word in query:
                raise error
        if "interrupt" in query:
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.sleep(30)
        best = float(query.split(maxsplit=1)[0])
        return [best / (1 + place) for place in reversed(range(len(documents)))]


class FakeModel(FakeEmbedder):
    """The fake embedder with the shape of a loaded one, unit vectors included."""

    name = "fake@1"
    closed = False

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        vectors = self(texts)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    async def embed(self, texts: Sequence[str], **_: Any) -> NDArray[np.float32]:
        return self.encode(texts)

    async def measured(self, texts: Sequence[str], **_: Any) -> tuple[NDArray[np.float32], Phases]:
        return self.encode(texts), Phases()

    def close(self) -> None:
        self.closed = True


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANSWER_HOME", str(tmp_path / "home"))
    for name in ("ANSWER_CONFIG", "ANSWER_BEGAN", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)


def scripted(monkeypatch: pytest.MonkeyPatch, **raises: BaseException) -> ScriptedReranker:
    """Puts scripted parts in place of models and index."""
    reranker = ScriptedReranker(raises)

    @contextmanager
    def opened(*_: object) -> Iterator[Scorer]:
        yield Scorer(FakeRetriever(PASSAGES), reranker, "generation-1", len(PASSAGES), "scripted")

    monkeypatch.setattr(scoring, "opened", opened)
    return reranker


def questions(tmp_path: Path, *lines: object) -> str:
    path = tmp_path / "questions.jsonl"
    path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
    return str(path)


def row(score: float | str, answerable: bool) -> dict[str, object]:
    return {"question": f"{score} is asked", "answerable": answerable}


TWENTY = [
    *(row(0.5 + place / 100, True) for place in range(10)),
    *(row(0.2 + place / 20, False) for place in range(10)),
]


def answer(*arguments: str) -> Result:
    return CliRunner().invoke(main.app, ["calibrate", *arguments], prog_name="answer", env={"COLUMNS": "80"})


def document(*arguments: str) -> dict[str, Any]:
    result = answer(*arguments, "--json")
    assert result.exit_code == 0, result.stderr
    return dict(json.loads(result.stdout))


# The score that is calibrated is the score that the floor is compared with


@pytest.mark.parametrize("weight", [0.0, 0.5, 1.0])
async def test_a_floor_at_the_score_keeps_the_question_and_one_above_it_loses_it(weight: float) -> None:
    question = "0.61 is asked"
    reranker = ScriptedReranker()
    scorer = Scorer(FakeRetriever(PASSAGES), reranker, "", 0, "")
    policy = Policy(retrieval_weight=weight, score_floor=0.9)
    best = await best_passage(scorer, question, policy, Deadline.after(5, time.monotonic))
    assert best is not None
    assert (best.id, best.score) == (PASSAGES[-1].id, 0.61)
    made = replace(parts(), reranker=reranker)
    at = await ask(made, question, score_floor=best.score, retrieval_weight=weight)
    assert [passage.id for passage in at.passages] == [best.id]
    above = await ask(made, question, score_floor=math.nextafter(best.score, 1), retrieval_weight=weight)
    assert above.decline is not None
    assert above.decline.reason is DeclineReason.NOTHING_RETRIEVED
    ours, *engines = reranker.documents
    assert engines == [ours, ours]


async def test_as_many_are_reranked_as_the_settings_say() -> None:
    scorer = Scorer(FakeRetriever(PASSAGES), ScriptedReranker(), "", 0, "")
    best = await best_passage(scorer, "0.6", Policy(candidates=1), Deadline.after(5, time.monotonic))
    assert best is not None
    assert best.id == PASSAGES[0].id
    nothing = Scorer(FakeRetriever([]), ScriptedReranker(), "", 0, "")
    assert await best_passage(nothing, "0.6", Policy(), Deadline.after(5, time.monotonic)) is None


# What is printed


def test_people_see_histograms_figures_and_what_to_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scripted(monkeypatch)
    result = answer(questions(tmp_path, *TWENTY), "--set", "answer.score_floor=0.53")
    assert result.exit_code == 0, result.stderr
    assert max(map(cell_len, result.stdout.splitlines())) <= 80
    shown = " ".join(result.stdout.split())
    assert "10 answerable and 10 unanswerable questions" in shown
    assert "█" in shown
    assert "The floor now, 0.53, loses 3 of 10 answerable questions (30.0 %): more than 0.5 %." in shown
    assert "proposed is 0.5, which loses 0 of 10" in shown
    assert "just the lowest score seen" in shown
    assert "0.651, loses 10 of 10 answerable" in shown
    assert NOT_THE_GATE in shown
    assert "40 %" in shown
    assert "--set answer.score_floor=0.5 " in shown
    assert "score_floor: 0.5" in shown


def test_the_document_holds_all_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scripted(monkeypatch)
    found = document(questions(tmp_path, *TWENTY), "--lose", "0.2", "--set", "answer.score_floor=0.53")
    assert found["set"] == "answer.score_floor=0.52"
    proposal = found["calibration"]["proposal"]
    assert (proposal["exact"]["value"], proposal["exact"]["n"], proposal["setting"]) == (0.52, 10, 0.52)
    assert proposal["exact"]["low"] <= 0.52 <= proposal["exact"]["high"]
    assert proposal["at"]["loss"]["lost"]["value"] == 0.2
    assert found["calibration"]["current"]["loss"]["floor"] == 0.53
    assert found["published_lost_percent"] == 40.0
    assert [case["score"] for case in found["cases"]] == [float(each["question"].split()[0]) for each in TWENTY]  # type: ignore[attr-defined]
    assert {case["passage_id"] for case in found["cases"]} == {PASSAGES[-1].id}
    assert (found["complete"], found["reranker"], found["passages"]) == (True, "scripted", 3)


def test_a_draw_is_of_the_size_asked_for_and_repeatable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scripted(monkeypatch)
    file = questions(tmp_path, *TWENTY)
    first, again, other = (document(file, "--limit", "8", "--seed", seed) for seed in ("1", "1", "2"))
    assert first == again
    assert first["cases"] != other["cases"]
    assert (len(first["cases"]), first["rows"], first["chosen"]) == (8, 20, 8)


def test_a_picture_is_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scripted(monkeypatch)
    path = tmp_path / "floors.png"
    assert answer(questions(tmp_path, *TWENTY), "--png", str(path)).exit_code == 0
    with Image.open(path) as image:
        assert (image.format, image.size) == ("PNG", (960, 720))
        for part in ((0, 70, 960, 352), (0, 410, 960, 720)):  # the bars, and the curves
            colours = {colour for _, colour in image.crop(part).getcolors(1 << 20) or []}
            assert {(0x00, 0x72, 0xB2), (0xD5, 0x5E, 0x00)} <= colours


def test_answerable_questions_alone_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scripted(monkeypatch)
    path = tmp_path / "floors.png"
    result = answer(questions(tmp_path, *TWENTY[:10]), "--png", str(path))
    assert result.exit_code == 0, result.stderr
    assert "0 unanswerable" in result.stdout
    assert path.is_file()


@given(st.floats(0, 1), st.integers(1, 40))
def test_a_bar_is_as_long_as_its_share(share: float, width: int) -> None:
    drawn = bar(share, width)
    assert len(drawn) <= width
    assert bool(drawn) == (share > 0)
    eighths = sum(8 if block == "█" else " ▏▎▍▌▋▊▉".index(block) for block in drawn)
    assert eighths == pytest.approx(share * width * 8, abs=1)


# What goes wrong


def test_bad_rows_are_named_by_file_and_line_and_cost_only_themselves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted(monkeypatch)
    file = questions(tmp_path, "{", *TWENTY, {"question": "0.1 no label"}, {"question": "", "answerable": True})
    result = answer(file, "--json")
    assert result.exit_code == 0
    for line in (1, 22, 23):
        assert f"questions.jsonl:{line}: " in result.stderr
    found = json.loads(result.stdout)
    assert len(found["bad_rows"]) == 3
    assert len(found["cases"]) == 20


def test_a_question_that_fails_is_left_out_and_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scripted(monkeypatch, broken=OverloadedError("no room for it"))
    result = answer(questions(tmp_path, *TWENTY, row("broken", True)))
    assert result.exit_code == 0
    assert "no room for it" in result.stderr
    assert "1 failed" in result.stdout


def test_failure_after_failure_ends_the_run_with_what_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reranker = scripted(monkeypatch, broken=OverloadedError("no room for it"))
    file = questions(tmp_path, *TWENTY, *[row("broken", True)] * 5)
    result = answer(file, "--json")
    assert result.exit_code == 1
    found = json.loads(result.stdout)
    assert (found["complete"], len(found["cases"]), len(found["failed"])) == (False, 20, 3)
    assert len(reranker.asked) == 23


def test_failures_that_are_apart_do_not_end_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scripted(monkeypatch, broken=OverloadedError("no room for it"))
    found = document(questions(tmp_path, *[row("broken", True), row("broken", True), row(0.5, True)] * 3))
    assert (found["complete"], len(found["cases"]), len(found["failed"])) == (True, 3, 6)


def test_control_c_shows_what_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scripted(monkeypatch)
    result = answer(questions(tmp_path, *TWENTY, row("interrupt", True), row(0.01, True)))
    assert result.exit_code == 130
    assert "interrupted: 20 of 22 questions are scored" in result.stderr
    assert "cut short: 20 of 22" in result.stdout
    assert "--set answer.score_floor=0.5\n" in result.stdout


def test_control_c_before_the_first_score(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def opened(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(scoring, "opened", opened)
    result = answer(questions(tmp_path, *TWENTY))
    assert (result.exit_code, result.stdout) == (130, "")
    assert "interrupted" in result.stderr


@pytest.mark.parametrize(
    ("lines", "options", "said"),
    [
        ([row(0.5, False)], [], "no answerable question"),
        (["{"], [], "holds no good row"),
        (TWENTY, ["--passages"], "leave --passages out"),
        (TWENTY, ["--png", "/nowhere/floors.png"], "no folder"),
        (TWENTY, ["--set", "answer.score_flor=1"], "score_flor"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: list[object], options: list[str], said: str
) -> None:
    scripted(monkeypatch)
    result = answer(questions(tmp_path, *lines), *options)
    assert result.exit_code in {1, 2}
    assert result.stdout == ""
    last = result.stderr.splitlines()[-1]
    assert last.startswith("answer: ")
    assert said in last


def test_a_missing_index_names_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = FakeModel()
    monkeypatch.setattr(scoring, "load_embedder", lambda _settings: model)
    result = answer(questions(tmp_path, *TWENTY))
    assert result.exit_code == 1
    assert "answer index" in result.stderr
    assert model.closed


# The rows' own passages


def test_own_passages_are_taken_once_and_whole() -> None:
    twice = QaPassage(text="The tower was built in 1889.", title="Tower")
    rows = [
        AnswerabilityRow(question="?", answerable=True, passages=(twice, QaPassage(text="word " * 900))),
        AnswerabilityRow(question="?", answerable=True, passages=(twice,)),
    ]
    found = scoring.own_passages(rows)
    assert [(passage.title, len(passage.text)) for passage in found] == [("Tower", 28), ("", 4500)]
    assert len({passage.id for passage in found}) == 2


def test_the_passages_of_all_rows_are_searched_and_nothing_is_left_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = FakeModel()
    monkeypatch.setattr(scoring, "load_embedder", lambda _settings: model)
    texts = ["tower was built in 1889", "museum opened in 1793", "river flows to the sea"]
    rows = [
        {"id": f"q-{n}", "question": text, "answerable": True, "answers": [], "passages": [{"text": text}]}
        for n, text in enumerate(texts)
    ]
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", None)
    found = document(questions(tmp_path, *rows, row(0, False)), "--passages", "--limit", "3")
    assert found["passages"] == 3  # of all rows, also where fewer are drawn
    own = {case["id"]: case["score"] for case in found["cases"] if case["answerable"]}
    assert len(own) >= 2
    assert all(score == pytest.approx(1.0, abs=1e-5) for score in own.values())
    assert list((tmp_path / "temporary").iterdir()) == []
    assert not (tmp_path / "home" / "index").exists()
    assert model.closed
