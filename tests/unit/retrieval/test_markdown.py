from serving.retrieval.markdown import plain, sections

PAGE = """---
title: front matter
---
Before any heading.

# Guide

Intro.

## Install ##

```sh
# not a heading
pip install it
```

Setext one
==========

Text.

Setext two
----------
More text
over two lines
---
| a | b |
|---|---|

~~~~
# code
~~~
still code
~~~~

### [Linked](https://x.y) `code` **bold** __init__
#no-space
"""


def test_sections_with_their_heading_paths() -> None:
    found = [(section.level, section.heading_path, section.text) for section in sections(PAGE)]
    assert found == [
        (0, (), "Before any heading."),
        (1, ("Guide",), "Intro."),
        (2, ("Guide", "Install"), "```sh\n# not a heading\npip install it\n```"),
        (1, ("Setext one",), "Text."),
        (
            2,
            ("Setext one", "Setext two"),
            "More text\nover two lines\n---\n| a | b |\n|---|---|\n\n~~~~\n# code\n~~~\nstill code\n~~~~",
        ),
        (3, ("Setext one", "Setext two", "Linked code bold __init__"), "#no-space"),
    ]


def test_closing_marks_are_no_part_of_a_heading() -> None:
    found = [section.heading_path for section in sections("# A ##\n# C#\n# ##\n#\n# B")]
    assert found == [(), ("A",), ("C#",), (), (), ("B",)]


def test_a_skipped_level_does_not_break_the_path() -> None:
    paths = [section.heading_path for section in sections("# A\n#### D\n## B\n# E")]
    assert paths == [(), ("A",), ("A", "D"), ("A", "B"), ("E",)]


def test_a_rule_at_the_start_is_not_front_matter() -> None:
    assert [section.text for section in sections("---\n\nKept.\n\n---\n")] == ["---\n\nKept.\n\n---"]


def test_an_open_fence_reaches_to_the_end() -> None:
    assert [section.heading_path for section in sections("# A\n```\n# b\n## c")] == [(), ("A",)]


def test_plain_leaves_stars_of_arguments() -> None:
    assert plain("![badge](u) f(*args, **kwargs) {#anchor}") == "f(*args, **kwargs)"


def test_a_line_that_is_too_long_for_a_heading_is_text() -> None:
    long = "word " * 200
    [first, second] = sections(f"# {long}\n\nText.\n\n## Below\n\nMore.")
    assert (first.heading_path, second.heading_path) == ((), ("Below",))
    assert first.text == f"# {long}\n\nText."
