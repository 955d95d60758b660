import time

import pytest

from serving.retrieval.rst import to_markdown

PAGE = """\
=====
Title
=====

.. image:: https://x.y/badge.svg
   :target: https://x.y

|build| A `link <https://x.y>`_, a :func:`~os.path.join` and ``code``.

Section
-------

Use it like this::

    import x

    x.y()

.. code-block:: python
   :linenos:

   z = 1

.. note:: Mind the gap.

Sub
~~~

.. a comment
   over two lines

.. _target: https://x.y

| in | a |  table |

End.

Other
-----
"""


def test_what_reads_as_prose_is_kept_as_markdown() -> None:
    lines = [line for line in to_markdown(PAGE).split("\n") if line.strip()]
    assert lines == [
        "# Title",
        "A link, a `~os.path.join` and `code`.",
        "## Section",
        "Use it like this:",
        "```",
        "import x",
        "x.y()",
        "```",
        "```python",
        "z = 1",
        "```",
        "Mind the gap.",
        "### Sub",
        "| in | a |  table |",
        "End.",
        "## Other",
    ]


@pytest.mark.parametrize("run", [":", "`", "` ", "`a<", "|a ", ":a:`", "``", ".. ", ":a:` ", "` x"])
def test_no_run_is_looked_at_again_from_each_of_its_places(run: str) -> None:
    def took(size: int) -> float:
        text = run * (size // len(run))
        began = time.process_time()
        to_markdown(text)
        return time.process_time() - began

    took(1000)
    assert took(120_000) < 12 * (took(30_000) + 0.02)


def test_a_long_run_of_spaces_in_a_link() -> None:
    began = time.process_time()
    to_markdown("`" + " " * 100_000)
    assert time.process_time() - began < 5
