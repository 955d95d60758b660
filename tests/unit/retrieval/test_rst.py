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
