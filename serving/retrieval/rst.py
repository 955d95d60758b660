"""reStructuredText as Markdown, as far as reading it as prose needs: headings, code blocks, roles and links.

Not a parser. What it does not know stays as it is written, which in reStructuredText is still readable text.
"""

from __future__ import annotations

import re

_UNDERLINE = re.compile(r"([=\-~^\"'`*+#.:_<>])\1{2,}\s*$")
_DIRECTIVE = re.compile(r"(\s*)\.\. (?:\|[^|]*\| )?([\w:-]+)::[ \t]*(.*)$")
_COMMENT = re.compile(r"(\s*)\.\.(?:\s|$)")
_OPTION = re.compile(r"\s+:[\w-]+:")
_CODE = {"code", "code-block", "sourcecode"}
# Their content is no prose of the document: pictures, tables of contents, settings.
_DROPPED = frozenset(
    """
    image figure contents toctree raw highlight meta include literalinclude replace role unicode target-notes
    automodule autoclass autofunction currentmodule module
    """.split()
)

_INLINE = (
    # Bounded, so that no run of one character is looked at again from each of its places.
    (re.compile(r":[\w:+.-]{1,80}:`([^`<]{1,500}?)(?:\s{0,80}<[^`>]*>)?`"), r"`\1`"),  # a role
    (re.compile(r"``([^`]+)``"), r"`\1`"),  # literal text
    (re.compile(r"`([^`<]{1,500}?)\s{0,80}<[^`>]+>`__?"), r"\1"),  # a link with its target
    (re.compile(r"`([^`]+)`__?(?!\w)"), r"\1"),  # a link by name
    (re.compile(r"\|\w(?:[\w .-]{0,80}\w)?\|_{0,2}(?:[ \t]+|(?=\s|$))"), ""),  # a substitution, nearly always a badge
    (re.compile(r"(?m)^[ \t]*\.\. _[^\n]*\n?"), ""),  # a link target
)


def to_markdown(text: str) -> str:
    """The same text with Markdown headings and fences; pictures, comments and link targets left out."""
    return _Converter(text).convert()


class _Converter:
    def __init__(self, text: str) -> None:
        self._lines = _blank_inline(text).split("\n")
        self._at = 0
        self._out: list[str] = []
        self._levels: list[tuple[str, bool]] = []

    def convert(self) -> str:
        while self._at < len(self._lines):
            if not (self._heading() or self._directive() or self._comment() or self._literal()):
                self._out.append(self._lines[self._at])
                self._at += 1
        return "\n".join(self._out)

    def _line(self, offset: int) -> str:
        at = self._at + offset
        return self._lines[at] if at < len(self._lines) else ""

    def _heading(self) -> bool:
        overline = _UNDERLINE.match(self._line(0))
        offset = 1 if overline else 0
        title, underline = self._line(offset).strip(), _UNDERLINE.match(self._line(offset + 1))
        if not title or underline is None or (overline and overline[1] != underline[1]):
            return False
        indented = self._line(offset)[:1].isspace()
        if len(underline.group().rstrip()) < len(title) or (indented and not overline):
            return False
        style = (underline[1], bool(overline))
        # Levels are not fixed: the first style seen is the highest, the next the one below.
        if style not in self._levels:
            self._levels.append(style)
        self._out += ["", "#" * min(self._levels.index(style) + 1, 6) + " " + title, ""]
        self._at += offset + 2
        return True

    def _directive(self) -> bool:
        match = _DIRECTIVE.match(self._line(0))
        if match is None:
            return False
        margin, name, argument = match.groups()
        self._at += 1
        if name in _DROPPED:
            self._indented(len(margin))
            return True
        while _OPTION.match(self._line(0)):
            self._at += 1
        if name in _CODE:
            self._fence(argument, self._indented(len(margin)))
        elif argument:
            # A note, a warning, a version: the text counts, and its content below is read on as it stands.
            self._out.append(f"{margin}{argument}")
        return True

    def _comment(self) -> bool:
        match = _COMMENT.match(self._line(0))
        if match is None:
            return False
        self._at += 1
        self._indented(len(match[1]))
        return True

    def _literal(self) -> bool:
        line = self._line(0).rstrip()
        if not line.endswith("::"):
            return False
        margin = len(line) - len(line.lstrip())
        self._at += 1
        block = self._indented(margin)
        introduction = line[:-1].rstrip(":").rstrip()
        self._out.append(f"{introduction}:" if introduction else "")
        self._fence("", block)
        return True

    def _indented(self, margin: int) -> list[str]:
        """Take the lines that stand deeper than ``margin``."""
        start = self._at
        while self._at < len(self._lines):
            line = self._line(0)
            if line.strip() and len(line) - len(line.lstrip()) <= margin:
                break
            self._at += 1
        return self._lines[start : self._at]

    def _fence(self, language: str, block: list[str]) -> None:
        shallowest = min((len(line) - len(line.lstrip()) for line in block if line.strip()), default=0)
        code = "\n".join(line[shallowest:] for line in block).strip("\n")
        if code:
            self._out += ["", f"```{language}", code, "```", ""]


def _blank_inline(text: str) -> str:
    for pattern, replacement in _INLINE:
        text = pattern.sub(replacement, text)
    return text
