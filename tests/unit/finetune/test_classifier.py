"""The classifier job on a few made-up sources: what is learned, what is left out, and what is measured."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from finetune import jobs
from finetune.classifier import fitting, made
from finetune.classifier.examples import ClassifierInputs, Example, package_names, sure, written
from finetune.classifier.examples import given as examples_of
from finetune.classifier.fitting import Features, balanced, calibrated
from finetune.classifier.judging import DECIDES, judge
from finetune.classifier.leaving import leave_out
from finetune.classifier.settings import ClassifierSettings
from finetune.errors import JobError
from finetune.judging import better
from finetune.run import Run
from finetune.settings import parse
from models.classifier import NgramClassifier, scores
from models.ngrams import Grams
from serving.answer.routing import classify
from serving.answer.types import Route

PLACES = "Tessen Korran Malve Odrin Pellow Quarn Rishel Sorna Tavik Ulmer Vessa Wirrel Yaddo Zenna".split()
QUERIES = {
    "sites": ("search", ["{}.com", "{} login", "go to {}.org", "www.{}.net", "{} homepage", "https://{}.io"]),
    "portals": ("search", ["{}.net", "{} sign in", "visit {}.com", "www {} com", "{}.de", "{} official site"]),
    "facts": ("single_pass", ["who founded {}?", "when was {} built?", "where is {}?", "what is {} known for?"]),
    "trivia": ("single_pass", ["what year was {} founded", "who lives in {}", "why is {} famous", "where is {} now"]),
    "hops": ("agentic", ["which is older, {} or Rome?", "do {} and Rome share a river?", "compare {} and Rome"]),
    "fans": ("agentic", ["are {} and Oslo both old?", "what is the mayor of each of the top 5 cities in {}?"]),
    "plain": (None, ["what is the river of {}?", "weather {}", "{} hotels cheap"]),
}
HELD_OUT = "held.test.jsonl"


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("kit")
    for source, (route, patterns) in QUERIES.items():
        queries = [pattern.format(place) for place in PLACES for pattern in patterns]
        write(root / f"{source}.jsonl", [row(f"{source}-{n}", query, route) for n, query in enumerate(queries)])
    held = [row(f"held-{n}", f"is {place} older than Bern?", "agentic") for n, place in enumerate(PLACES)]
    write(root / HELD_OUT, held)
    mills = {place: f"The old mill of {place} burned." for place in PLACES}
    write(
        root / "topics.jsonl",
        [{"id": f"t-{n}", "title": f"{place} (town)", "text": text} for n, (place, text) in enumerate(mills.items())],
    )
    return root


def row(name: str, query: str, route: str | None) -> dict[str, object]:
    return {"id": name, "query": query, "route": route, "kind": "k"}


def write(path: Path, rows: list[dict[str, object]]) -> None:
    path.write_text("".join(f"{json.dumps(each)}\n" for each in rows))


def settings(kit: Path, **changes: object) -> ClassifierSettings:
    tree: dict[str, object] = {
        "data_root": str(kit),
        "data": {"routes": [f"{source}.jsonl" for source in QUERIES], "topics": ["topics.jsonl"]},
        "held_out": [HELD_OUT],
        "grams": {"bits": 14},
        "invented_names": 40,
        "made_questions": 60,
    }
    return parse(ClassifierSettings, {**tree, **changes})


@pytest.fixture(scope="module")
def trained(kit: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train(kit, tmp_path_factory.mktemp("runs") / "first")


def train(kit: Path, folder: Path) -> Path:
    job, chosen = jobs.JOBS["classifier"], settings(kit)
    inputs = job.read(chosen)
    run = Run.open("classifier", folder, chosen, {one.reference: one.describe() for one in inputs.all})
    job.train(run, chosen, inputs, folder)
    return run.weights


def test_it_learns_to_route(trained: Path) -> None:
    classifier = NgramClassifier(trained)
    routes = {
        text: classifier.judge(text).route
        for text in ("lumora.com", "who founded Lumora?", "is Lumora older than Bern?")
    }
    assert list(routes.values()) == [Route.SEARCH, Route.SINGLE_PASS, Route.AGENTIC]


def test_the_same_run_again_gives_the_same_weights(kit: Path, trained: Path, tmp_path: Path) -> None:
    again = train(kit, tmp_path / "again")
    for name in ("config.json", "model.safetensors"):
        assert (again / name).read_bytes() == (trained / name).read_bytes()


def test_a_run_logs_each_source_once_even_when_it_is_begun_again(kit: Path, tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_text('{"step": 1, "right without sites": 0.0}\n{"step": 2, "ri')
    train(kit, tmp_path)
    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == list(range(1, len(QUERIES) + 1))


def test_tensorboard_shows_what_was_logged(trained: Path) -> None:
    lines = [json.loads(line) for line in (trained.parent / "metrics.jsonl").read_text().splitlines()]
    events = EventAccumulator(str(trained.parent / "tensorboard")).Reload()
    shown = {tag: events.Scalars(tag)[0] for tag in events.Tags()["scalars"]}
    assert len(shown) == len(lines)
    for line in lines:
        (tag,) = line.keys() - {"step"}
        assert (shown[tag].step, shown[tag].value) == (line["step"], pytest.approx(line[tag], abs=1e-6))


def test_weights_and_rules_are_judged_on_the_same_cases(kit: Path, trained: Path, tmp_path: Path) -> None:
    chosen = settings(kit)
    ours, rules = judge(chosen, trained, tmp_path), judge(chosen, None, tmp_path)
    found = {bar["name"]: bar for bar in ours.metrics()["bars"]}
    labelled = sum(len(PLACES) * len(patterns) for route, patterns in QUERIES.values() if route)
    assert found[DECIDES]["n"] == labelled
    assert found["megabytes"]["value"] < 4.0
    assert {"agreement with the rules on clear cases", "questions sent to search", "ECE", "p50 ms a query"} <= set(
        found
    )
    assert "ECE" not in {measure.name for measure in rules.measures}  # the rules state no probability
    assert better(ours, rules).n == labelled
    assert ours.reported["reproduced"] == 1.0
    assert ours.reported["held_out"]["held"]["n"] == len(PLACES)
    assert set(ours.reported["sources"]) == set(QUERIES)


def test_weights_are_judged_by_their_own_recipe(kit: Path, trained: Path, tmp_path: Path) -> None:
    """Settings of another recipe change nothing of what the weights are judged as."""
    other = judge(settings(kit, strength=0.01, epochs=1), trained, tmp_path)
    same = judge(settings(kit), trained, tmp_path)
    assert other.reported["sources"] == same.reported["sources"]


def test_no_model_judges_a_source_that_it_has_seen(kit: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = settings(kit, data={"routes": ["sites.jsonl", "facts.jsonl", "trivia.jsonl", "hops.jsonl"],
                                 "together": [["facts", "trivia"]]})  # fmt: skip
    real = [Example(f"{n}", text, route, source, labelled=True) for n, (text, route, source) in enumerate((
        ("a.com", Route.SEARCH, "sites"), ("who is a", Route.SINGLE_PASS, "facts"),
        ("why is b", Route.SINGLE_PASS, "trivia"), ("a or b?", Route.AGENTIC, "hops")))]  # fmt: skip
    examples = [*real, *(Example("~", one.text, one.route, one.source, made=True) for one in real)]
    seen: list[set[str]] = []

    def watched(features: Features, learned: list[Example], chosen: ClassifierSettings) -> fitting.Fitted:
        seen.append({one.source for one in learned})
        return fitting.fit(features, learned, chosen)

    leave_out(Features.of([one.text for one in examples], Grams(bits=8)), examples, chosen, fitted=watched)
    assert seen == [{"sites", "hops"}, {"sites", "facts", "trivia"}, {"facts", "trivia", "hops"}, {"sites", "hops"}]


def test_names_that_code_writes_are_judged_to_calibrate_and_counted_nowhere(kit: Path) -> None:
    examples = [
        Example("1", "a.com", Route.SEARCH, "sites", labelled=True),
        Example("2", "who is a", Route.SINGLE_PASS, "facts", labelled=True),
        Example("", "b.com", Route.SEARCH, "packages", made=True),
        Example("", "c.com", Route.SEARCH, "invented", made=True),
    ]
    seen: list[set[str]] = []

    def watched(features: Features, learned: list[Example], chosen: ClassifierSettings) -> fitting.Fitted:
        seen.append({one.source for one in learned})
        return fitting.fit(features, learned, chosen)

    features = Features.of([one.text for one in examples], Grams(bits=8))
    found = leave_out(features, examples, settings(kit), fitted=watched)
    assert seen == [
        {"sites", "packages", "invented"},
        {"sites", "facts"},
        {"sites", "facts"},
        {"facts", "packages", "invented"},
    ]
    assert len(found.decisions) == 2


@given(st.lists(st.text(max_size=40), min_size=1, max_size=6))
def test_the_job_and_the_product_score_a_text_alike(texts: list[str]) -> None:
    grams = Grams(bits=10)
    rng = np.random.default_rng(1)
    search, agentic = rng.normal(size=(2, 2**grams.bits))
    ours = fitting.Fitted((search, agentic), (0.0, 0.0)).scores(Features.of(texts, grams))
    for text, found in zip(texts, ours, strict=True):
        assert found == pytest.approx(scores(grams.hashed(text), search, agentic), abs=1e-4)


def test_no_source_sends_more_of_its_questions_to_search_than_it_may() -> None:
    rng = np.random.default_rng(4)
    examples = [Example("", "", Route.SEARCH, "sites", labelled=True)] * 100
    examples += [Example("", "", Route.SINGLE_PASS, source) for source in ("easy", "hard") for _ in range(500)]
    marks = np.concatenate([rng.normal(6, 1, 100), rng.normal(-6, 1, 500), rng.normal(3, 1, 500)])
    chosen = parse(ClassifierSettings, {"data": {}, "leak": 0.02})
    head, _ = calibrated(np.stack([marks, marks], axis=1), examples, chosen)
    sent = np.array([head.probability(mark) >= head.threshold for mark in marks])
    assert sent[600:].sum() == 10  # 0.02 of 500, though it is 0.01 of all
    assert sent[:100].mean() > 0.5


def test_calibration_says_how_often_it_is_right() -> None:
    rng = np.random.default_rng(3)
    marks = rng.normal(0.0, 3.0, size=(6_000, 2))
    odds = 1.0 / (1.0 + np.exp(-0.4 * marks))  # overconfident by far
    goes, looks = rng.random(6_000) < odds[:, 0], rng.random(6_000) < odds[:, 1]
    asked = [Route.AGENTIC if one else Route.SINGLE_PASS for one in looks]
    examples = [
        Example(str(n), "", Route.SEARCH if goes[n] else asked[n], "s", labelled=True) for n in range(len(marks))
    ]
    heads = calibrated(marks, examples, parse(ClassifierSettings, {"data": {}}))
    for head, column in zip(heads, range(2), strict=True):
        said = np.array([head.probability(mark) for mark in marks[:, column]])
        assert np.abs(said - odds[:, column]).max() < 0.05


@given(st.lists(st.tuples(st.booleans(), st.sampled_from("abc")), min_size=2, max_size=50))
def test_both_classes_weigh_alike(rows: list[tuple[bool, str]]) -> None:
    positive, sources = np.array([one for one, _ in rows]), np.array([source for _, source in rows])
    found = balanced(positive, sources)
    assert (found > 0).all()
    if 0 < positive.sum() < len(rows):
        assert found[positive].sum() == pytest.approx(found[~positive].sum())


def test_the_rules_are_taken_at_their_word_where_they_are_sure() -> None:
    assert sure("github.com") is Route.SEARCH
    assert sure("emacs vs vim") is Route.AGENTIC
    assert sure("who wrote vim?") is Route.SINGLE_PASS
    assert sure("photosynthesis") is None  # ambiguous
    assert sure("is the earth round?") is None  # a yes or no may take any number of looks


def test_a_label_goes_before_the_rules(kit: Path) -> None:
    write(kit / "odd.jsonl", [row("o-1", "emacs vs vim", "single_pass"), row("o-2", "emacs vs vi", None)])
    inputs = ClassifierInputs(settings(kit, data={"routes": ["odd.jsonl"]}))
    labelled, free = examples_of(inputs.routes)
    assert (labelled.route, labelled.clear, labelled.labelled) == (Route.SINGLE_PASS, None, True)
    assert (free.route, free.clear, free.labelled) == (Route.AGENTIC, Route.AGENTIC, False)


def test_what_is_written_is_the_same_each_time_and_of_every_route(kit: Path) -> None:
    chosen = settings(kit)
    inputs = ClassifierInputs(chosen)
    real = [Example("1", "who founded Tessen?", Route.SINGLE_PASS, "facts", labelled=True)]
    topics = [each for one in inputs.topics for each in one.rows]
    found, again = (written(chosen, real, topics, inputs.names) for _ in range(2))
    assert found == again
    assert all(one.made for one in found)
    assert {source for source, _ in Counter((one.source, one.route) for one in found)} >= {
        "facts", "packages", "invented", "topics", "titles", "keywords",
    }  # fmt: skip
    assert {one.route for one in found if one.source == "packages"} == set(Route)


def test_a_package_that_comes_or_goes_makes_another_run(kit: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = {one.reference: one.sha256 for one in ClassifierInputs(settings(kit)).all}
    monkeypatch.setattr("finetune.classifier.examples.package_names", lambda: (*package_names(), "zzz"))
    after = {one.reference: one.sha256 for one in ClassifierInputs(settings(kit)).all}
    assert [name for name in before if before[name] != after[name]] == ["installed package names"]


@given(st.text("abcdefgh ?-.'é中", min_size=1, max_size=60), st.integers(0, 1_000))
def test_what_is_said_otherwise_is_said_again_for_the_same_randomness(text: str, seed: int) -> None:
    ways = (made.mistyped, made.reworded, made.remarked, made.in_another_alphabet)
    for way in ways:
        assert way(text, random.Random(seed)) == way(text, random.Random(seed))
    assert abs(len(made.mistyped(text, random.Random(seed))) - len(text)) <= 1


@given(st.sampled_from(["tessen", "red-heron", "blue fox", "korran7"]), st.integers(0, 2_000))
def test_addresses_are_what_the_rules_know_as_addresses_or_a_slip_away(name: str, seed: int) -> None:
    address = made.address(name, random.Random(seed))
    slip = any(mark in address for mark in (" ", ",", ".con", "ww."))
    of_perl = ".pl" in address  # to the rules the ending of a file, here also Poland's
    assert slip or of_perl or classify(address).route is Route.SEARCH, address


def test_most_written_comparisons_are_clear_to_the_rules() -> None:
    rng = random.Random(1)
    routes = [classify(made.comparison(["redis", "kafka", "celery"], rng)).route for _ in range(300)]
    assert routes.count(Route.AGENTIC) > 0.8 * len(routes)
    assert Route.SEARCH not in routes


def test_another_alphabet_has_no_letter_of_ours() -> None:
    rng = random.Random(2)
    for _ in range(200):
        assert not any(letter.isascii() and letter.isalpha() for letter in made.in_another_alphabet("who is Ada?", rng))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"data": {}}, r"data\.routes: name at least one file"),
        ({"data": {"routes": [HELD_OUT]}}, "is held out"),
        ({"data": {"routes": ["nothing.jsonl"]}}, r"nothing\.jsonl"),
    ],
)
def test_data_that_cannot_be_learned_from_is_refused(kit: Path, changes: dict[str, object], said: str) -> None:
    with pytest.raises(JobError, match=said):
        ClassifierInputs(settings(kit, **changes))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"grams": {"bits": 20}}, r"grams\.bits"),
        ({"grams": {"words": [3, 1]}}, r"write the shorter length first, \[1, 3\]"),
        ({"leak": 2}, "leak"),
        ({"nonsense": 1}, "nonsense"),
    ],
)
def test_settings_that_cannot_be_are_refused(kit: Path, changes: dict[str, object], said: str) -> None:
    with pytest.raises(JobError, match=said):
        settings(kit, **changes)
