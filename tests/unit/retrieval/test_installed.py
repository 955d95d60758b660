import itertools
import random
import sys
from collections.abc import Iterable

from serving.answer.types import Passage
from serving.retrieval.chunking import passages
from serving.retrieval.documents import Document
from serving.retrieval.installed import InstalledReport, installed_documents
from serving.retrieval.readmes import clean, project_url, readme_document
from serving.retrieval.stdlib import stdlib_documents
from serving.retrieval.stdlib_modules import STDLIB_MODULES

from .fakes import FakeDistribution

README = """\
<p align="center"><img src="logo.png"></p>
<h1 align="center">Fake</h1>

[![build](https://x.y/b.svg)](https://x.y) ![cover](https://x.y/c.svg)

<!-- a comment
over lines --> **Fake** reads [the docs](docs/index.md "Docs") and `<a>` tags &amp; `x[i](y)`, or x[i](y).

## Use

```html
<b>[kept](as-it-is)</b>
```

That is how it is used today.

[ref]: https://x.y
"""

HEADERS = "Project-URL: Source, https://x.y/src\nProject-URL: Homepage, https://x.y/home\n"


def flat(documents: Iterable[Document]) -> list[Passage]:
    return [passage for document in documents for passage in passages(document)]


def readme_passages(distribution: FakeDistribution) -> list[Passage]:
    document = readme_document(distribution, 12)
    return list(passages(document)) if document else []


def test_a_readme_as_passages() -> None:
    found = readme_passages(FakeDistribution("fake-lib", README, headers=HEADERS))
    assert [(passage.heading_path, passage.text) for passage in found] == [
        (("Fake",), "**Fake** reads the docs and `<a>` tags & `x[i](y)`, or x[i](y)."),
        (("Fake", "Use"), "```html\n<b>[kept](as-it-is)</b>\n```\n\nThat is how it is used today."),
    ]
    assert {(passage.title, passage.source, passage.url) for passage in found} == {
        ("fake-lib 1.2.3", "fake-lib", "https://x.y/home")
    }


def test_a_readme_gives_its_beginning_and_nothing_tiny() -> None:
    readme = "# A\n\nToo short.\n\n" + "\n\n".join(f"## H{n}\n\nThis is section number {n} of it." for n in range(30))
    found = readme_passages(FakeDistribution("fake", readme))
    assert [passage.heading_path[-1] for passage in found] == [f"H{number}" for number in range(12)]


def test_a_description_without_a_type_is_restructured_text_unless_it_has_markdown_headings() -> None:
    assert clean("Title\n~~~~~\n\n``code``", "").strip().startswith("# Title")
    assert "``code``" in clean("# Title\n\n``code``", "")
    assert "# Title" in clean("Title\n^^^^^\n", "text/x-rst; charset=UTF-8")


def test_project_urls_by_preference() -> None:
    urls = ["Bug Tracker, https://x.y/bugs", "Source Code, https://x.y/src", "Documentation, https://x.y/docs"]
    assert project_url("fake", urls, None) == "https://x.y/docs"
    assert project_url("fake", urls[:2], None) == "https://x.y/src"
    assert project_url("fake", urls[:2], "https://x.y/") == "https://x.y/"
    assert project_url("fake", ["Homepage, javascript:alert(1)"], "UNKNOWN") == "https://pypi.org/project/fake/"


def test_itertools_from_the_standard_library() -> None:
    found = {passage.title: passage for passage in flat(stdlib_documents(["itertools"]))}
    chain = found["itertools.chain"]
    assert chain.text.startswith("chain(*iterables) --> chain object\n\nReturn a chain object whose")
    assert chain.heading_path == ("itertools", "itertools.chain")
    assert chain.source == "python-stdlib"
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert chain.url == f"https://docs.python.org/{version}/library/itertools.html#itertools.chain"
    assert found["itertools"].heading_path == ("itertools",)
    assert (found["itertools"].url or "").endswith("itertools.html#module-itertools")
    assert "itertools.chain.from_iterable" in found
    assert not any("._" in title for title in found)
    assert all(len(passage.text) >= 30 for passage in found.values())
    assert itertools.chain.__doc__ is not None


def test_signatures_come_first_where_python_knows_them() -> None:
    found = {passage.title: passage for passage in flat(stdlib_documents(["random"]))}
    assert found["random.randint"].text == (
        "random.randint(a, b)\n\n" + (random.randint.__doc__ or "").strip().replace("\n        ", "\n")
    )
    # A method of a hidden object, and known as a function.
    assert "random.Random.randint" not in found


def test_builtins_have_pages_of_their_own() -> None:
    urls = {passage.title: (passage.url or "").rpartition("/")[2] for passage in flat(stdlib_documents(["builtins"]))}
    assert urls["len"] == "functions.html#len"
    assert urls["open"] == "functions.html#open"
    assert urls["str.split"] == "stdtypes.html#str.split"
    assert urls["ValueError"] == "exceptions.html#ValueError"
    # Of names for one thing, the one people use.
    assert "set.union" in urls
    assert "frozenset.union" not in urls
    assert "IOError" not in urls


def test_asyncio_stands_on_many_pages() -> None:
    urls = {passage.title: (passage.url or "").rpartition("/")[2] for passage in flat(stdlib_documents(["asyncio"]))}
    assert urls["asyncio.Queue"] == "asyncio-queue.html#asyncio.Queue"
    assert urls["asyncio.gather"] == "asyncio-task.html#asyncio.gather"


def test_the_whole_corpus_is_counted_and_has_no_address_or_repeat() -> None:
    report = InstalledReport()
    installed = [
        FakeDistribution("B_b", "# B\n\nThis is what the second one says.", content_type="text/markdown"),
        FakeDistribution("a-a", "", content_type=""),
        FakeDistribution("b.b", "# B\n\nThis is a copy further along the path."),
    ]
    documents = list(installed_documents(report, installed))
    assert len({document.key for document in documents}) == len(documents)
    found = flat(documents)
    assert (report.distributions, report.without_readme, report.readme_passages) == (2, 1, 1)
    assert found[0].title == "B_b 1.2.3"
    assert report.modules == len(STDLIB_MODULES)
    assert report.stdlib_passages == len(found) - 1 > 2000
    assert len({passage.id for passage in found}) == len(found)
    assert not any(" at 0x" in passage.text.partition("\n")[0] for passage in found)


def test_the_modules_are_listed_once_and_do_nothing_when_imported() -> None:
    assert len(set(STDLIB_MODULES)) == len(STDLIB_MODULES)
    tops = {name.partition(".")[0] for name in STDLIB_MODULES}
    assert tops <= sys.stdlib_module_names
    assert not tops & {"this", "antigravity", "idlelib", "turtle", "test"}
