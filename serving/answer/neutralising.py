"""Neutralising text that others wrote, so that in a prompt it can be read and can do nothing else.

A passage, a title or a question may hold what would look like the prompt's own frame: a fence, a marker, a chat-control
token, a label, or characters that a reader does not see and a model does. Here, and in the rendering alone, they lose
that look. Verification, quotes and the wire use the stored text.

Matching is done on a view of the text in which look-alikes are folded, letters are small and blanks are left out, so
``< | IM_end |＞`` is the token it imitates; edits are made on the text itself, so what matches nothing stays as it
was. No edit takes a character away from the view and none writes one that a pattern begins with: what was neutralised
once is not changed again. Linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from serving.answer.lookalikes import FOLDED, VISIBLE

# Chat-control tokens of the families in use; any other written ``<|…|>`` is taken for one too. The served model's own
# are added by whoever builds the engine.
CONTROL_TOKENS = tuple(
    """
    <|im_start|> <|im_end|> <|endoftext|> <|begin_of_text|> <|eot_id|> <|start_header_id|> <|end_header_id|> <|eom_id|>
    <|python_tag|> <|system|> <|user|> <|assistant|> <|end|> <|return|> <|channel|> <|message|> <|call|>
    <s> </s> <bos> <eos> <pad> <unk> <mask> <sop> <eop> <EOD> <SPECIAL_1> <extra_id_0> <extra_id_1>
    <start_of_turn> <end_of_turn> <start_of_image> <|turn> <turn|> <|think> <think|> <|tool_call> <tool_call|>
    [INST] [/INST] <<SYS>> <</SYS>> [SYSTEM_PROMPT] [/SYSTEM_PROMPT] [AVAILABLE_TOOLS] [/AVAILABLE_TOOLS]
    [TOOL_CALLS] [TOOL_RESULTS] [/TOOL_RESULTS] [TOOL_CONTENT] [IMG] [IMG_BREAK] [IMG_END] [THINK] [/THINK] [gMASK]
    <think> </think> <tool_call> </tool_call> <tool_response> </tool_response> <tools> </tools>
    <file_sep> <filename> <reponame> <repo_name> <gh_stars> <issue_start> <issue_comment> <issue_closed>
    <jupyter_start> <jupyter_text> <jupyter_code> <jupyter_output> <jupyter_script> <empty_output>
    <fim_prefix> <fim_middle> <fim_suffix> <fim_pad> <END_OF_TURN_TOKEN> <START_OF_TURN_TOKEN>
    """.split()
)

_CITATION_SPAN = re.compile("\ue200[^\ue200\ue201]*\ue201")
_NUMBERS = re.compile(r"\[\^?\d[\d,;‐-―−-]*\]")
_SOURCE_NUMBER = re.compile(r"\[(?=\^?\d[\d,;:‐-―−-]*†)")
_SQUARE = re.compile(r"\[([^\[\]]{1,128})\]")
_ANGLE = re.compile(r"<([^<>]{1,128})>")
_PIPED = re.compile(r"\|[^|&]+\|")  # not ``<|>`` and ``<||>``, which are operators
_OPENERS = re.compile(r"<{2,}")
_CLOSERS = re.compile(r">{2,}")
_DECLINE_WORD = re.compile(r"no_answer:")
# What the frame of the prompt, and of chat templates made of plain text, puts at the head of a line.
_LABEL = re.compile(
    r"[#*_>~+=-]*(?:(?P<label>passages?|question|answer|system|user|assistant|human|instructions?|response)[*_]*:"
    r"|(?P<order>answerwithsentencesthatcite))"
)
_LABEL_WINDOW = 96
_LINE = re.compile(r"[^\n]+")


def neutralise(text: str, control_tokens: Sequence[str] = CONTROL_TOKENS, nonce: str = "") -> str:
    """Untrusted text as it may stand in a prompt whose fences carry ``nonce``. Accepts any string; idempotent.

    - Characters without a look of their own go: controls, zero-width and bidirectional ones, tags, variation selectors,
      private use (with the citation spans that some models leak). Half surrogates become U+FFFD.
    - ``<`` is written ``&lt;`` in a run of two or more (and after one, ``>`` likewise), and where it opens a control
      token. Guillemets become ``"``.
    - A bracketed number, ``[1]``, and a control word, ``[INST]``, get round brackets: ``a[0]`` reads ``a(0)``.
    - A line that opens with a label of the frame gets it in quotation marks: ``"Question": …``.
    - The nonce, the word that declines, and control tokens without brackets are broken by a hyphen.
    """
    visible = _CITATION_SPAN.sub("", text).replace("\r\n", "\n").translate(VISIBLE)
    folded = visible.translate(FOLDED)
    written = list(visible)
    places = [place for place, character in enumerate(folded) if not character.isspace()]
    view = "".join([folded[place] for place in places])
    forbidden = _forbidden(tuple(control_tokens))
    for at, replacement in _replaced(view, forbidden):
        written[places[at]] = replacement
    for at in _broken(view, forbidden, squeezed(nonce)):
        written[places[at]] += "-"
    for start, end in _labels(folded):
        written[start] = '"' + written[start]
        written[end] += '"'
    return "".join(written)


def squeezed(text: str) -> str:
    """The view in which patterns are looked for: look-alikes folded, letters small, no blanks and no marks."""
    return "".join(text.translate(VISIBLE).translate(FOLDED).split())


class _Forbidden(NamedTuple):
    """Control tokens as the view shows them: what stands in angles, what in square brackets, and those in neither."""

    angle: frozenset[str]
    square: frozenset[str]
    words: re.Pattern[str] | None


@lru_cache(maxsize=64)
def _forbidden(control_tokens: tuple[str, ...]) -> _Forbidden:
    tokens = {token for token in map(squeezed, control_tokens) if len(token) > 1}
    angle = {token for token in tokens if token[0] == "<" and token[-1] == ">"}
    square = {token for token in tokens if token[0] == "[" and token[-1] == "]"}
    words = sorted(tokens - angle - square, key=len, reverse=True)
    return _Forbidden(
        frozenset(token[1:-1] for token in angle),
        frozenset(token[1:-1] for token in square),
        re.compile(f"(?={'|'.join(map(re.escape, words))})") if words else None,
    )


def _replaced(view: str, forbidden: _Forbidden) -> Iterator[tuple[int, str]]:
    """Yields places in ``view`` and what is written there instead."""
    for run in _OPENERS.finditer(view):
        yield from ((at, "&lt;") for at in range(*run.span()))
    opened = _OPENERS.search(view)
    for run in _CLOSERS.finditer(view, opened.end() if opened else len(view)):  # else ``>>>`` is a prompt of Python's
        yield from ((at, "&gt;") for at in range(*run.span()))
    for group in _ANGLE.finditer(view):
        if group[1] in forbidden.angle or _PIPED.fullmatch(group[1]):
            yield group.start(), "&lt;"
    for group in _NUMBERS.finditer(view):
        yield group.start(), "("
        yield group.end() - 1, ")"
    for group in _SOURCE_NUMBER.finditer(view):
        yield group.start(), "("
    for group in _SQUARE.finditer(view):
        if group[1] in forbidden.square:
            yield group.start(), "("
            yield group.end() - 1, ")"
    for word in _DECLINE_WORD.finditer(view):
        yield word.start() + len("no"), "-"


def _broken(view: str, forbidden: _Forbidden, nonce: str) -> Iterator[int]:
    """Yields places in ``view`` after which a hyphen goes: inside the nonce, and inside control words."""
    if nonce:
        for found in re.finditer(f"(?={re.escape(nonce)})", view):  # occurrences may overlap: each is broken
            yield found.start() + (len(nonce) - 1) // 2
    if forbidden.words:
        for found in forbidden.words.finditer(view):
            yield found.start()


def _labels(folded: str) -> Iterator[tuple[int, int]]:
    """Yields the places of the first and the last character of each label at the head of a line."""
    for line in _LINE.finditer(folded):
        seen = (place for place in range(*line.span()) if not folded[place].isspace())
        places = list(islice(seen, _LABEL_WINDOW))
        label = _LABEL.match("".join([folded[place] for place in places]))
        if label:
            start, end = label.span("label" if label["label"] else "order")
            yield places[start], places[end - 1]
