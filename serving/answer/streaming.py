"""The parser: fed a reply in any pieces, it gives the same statements in the same order as for the whole.

Lines make blocks (:mod:`serving.answer.blocks`), blocks lose their markers (:mod:`serving.answer.cleaning`), and what
is left is cut into sentences (:mod:`serving.answer.sentences`). A statement is given out once no continuation of the
reply could change it: nothing that might be the start of a marker, and no sentence that might go on. Linear in the
reply, whatever the pieces.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass, field

from serving.answer import blocks, inline, sentences
from serving.answer.blocks import Kind, Line
from serving.answer.cleaning import clean
from serving.answer.pages import Page
from serving.answer.statements import Block, Reply, Statement
from serving.answer.types import Claim, Span

_LINE_BREAKS = re.compile("\r\n?|[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_CONTEXT = 80
"""Characters kept before what is not parsed yet: a marker looks back at the word it is glued to."""
_LONGEST_HEAD = 200
"""Characters of an unfinished line that are looked at for its kind; after that its end is waited for."""
_GROWTH = 1.125
"""How much longer an undecided text must be before it is looked at again. Keeps any feeding linear."""


@dataclass(slots=True)
class _TextBlock:
    """The paragraph or list item being read: its source from ``start`` on is not parsed yet."""

    like: Statement
    quoted: bool
    pieces: list[str] = field(default_factory=list)
    start: int = 0
    size: int = 0
    next_look: int = 0

    def add(self, piece: str) -> None:
        self.pieces.append(piece)
        self.size += len(piece)

    def source(self) -> str:
        if len(self.pieces) > 1:
            self.pieces = ["".join(self.pieces)]
        return self.pieces[0] if self.pieces else ""

    def forget(self, until: int) -> None:
        """Moves on to ``until``, keeping some context before it."""
        source = self.source()
        dropped = max(0, until - _CONTEXT)
        self.pieces = [source[dropped:]]
        self.start = until - dropped
        self.size = len(source) - dropped


class Parser:
    """Parses one reply written over ``passages`` numbered passages. Accepts any text and never raises.

    Lone surrogates, which no UTF-8 text can hold, become U+FFFD, and every kind of line break a line feed.
    """

    def __init__(self, passages: int) -> None:
        self._passages = passages
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._page = Page(passages)
        self._held = ""  # the end of what was fed, when it is half a surrogate pair or half a line break
        self._line: list[str] = []  # the start of a line whose kind is not known yet
        self._line_size = 0
        self._in_line = False  # whether the text block's last line may go on
        self._text: _TextBlock | None = None
        self._fence: Line | None = None
        self._code: list[str] = []
        self._row: str | None = None  # a table row that may be a header
        self._row_ending = ""
        self._header: str | None = None
        self._blocks = 0
        self._groups = 0
        self._in_list = False

    def feed_bytes(self, piece: bytes) -> list[Statement]:
        """As :meth:`feed`, for UTF-8 cut anywhere; bytes that are none become U+FFFD."""
        return self.feed(self._decoder.decode(piece))

    def feed(self, piece: str) -> list[Statement]:
        """Takes the next piece of the reply; returns the statements that are now certain, in order."""
        self._take(self._clean(piece))
        text = self._text
        if text is not None and text.size >= text.next_look and not self._cut(text):
            text.next_look = int(text.size * _GROWTH) + 1
        return self._page.release()

    def finish(self) -> list[Statement]:
        """Ends the reply; returns the statements that were still held. Feed no more after it."""
        self._take(self._clean(self._decoder.decode(b"", final=True), final=True))
        if self._line:
            self._whole_line("".join(self._line), ending="")
            self._line = []
        self._close_text(ended=False)
        self._close_code(complete=False)
        self._close_table()
        return self._page.release()

    def reply(self) -> Reply:
        """What has been parsed so far; after :meth:`finish`, the whole reply."""
        return self._page.reply()

    def _clean(self, piece: str, *, final: bool = False) -> str:
        """Makes line breaks line feeds and lone surrogates U+FFFD. Half of a pair is held back."""
        piece = self._held + piece
        self._held = ""
        if not final and piece and (piece[-1] == "\r" or "\ud800" <= piece[-1] <= "\udbff"):
            piece, self._held = piece[:-1], piece[-1]
        if not piece.isascii():
            try:
                piece.encode()
            except UnicodeEncodeError:
                piece = piece.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return _LINE_BREAKS.sub("\n", piece)

    def _take(self, text: str) -> None:
        at = 0
        while (end := text.find("\n", at)) >= 0:
            self._part(text[at:end], ended=True)
            at = end + 1
        if at < len(text):
            self._part(text[at:], ended=False)

    def _part(self, piece: str, *, ended: bool) -> None:
        """Takes a part of a line, or the rest of it."""
        if self._in_line and self._text is not None:
            self._text.add(piece)
            self._in_line = not ended
            return
        self._line.append(piece)
        self._line_size += len(piece)
        if ended:
            line = "".join(self._line)
            self._line, self._line_size = [], 0
            self._whole_line(line, ending="\n")
        elif self._fence is None and self._line_size <= _LONGEST_HEAD:
            known = blocks.classify_early("".join(self._line), in_text=self._in_paragraph)
            if known is not None:
                self._line, self._line_size = [], 0
                self._begin(known, ending="")

    @property
    def _in_paragraph(self) -> bool:
        return self._text is not None and self._text.like.kind is Block.PARAGRAPH

    def _whole_line(self, line: str, *, ending: str) -> None:
        if self._fence is not None:
            if self._fence.quoted and blocks.leaves_quote(line):
                self._close_code(complete=True)
            elif blocks.closes(line, self._fence.fence, quoted=self._fence.quoted):
                self._close_code(complete=True)
                self._page.write(line + ending)
                return
            else:
                self._code.append(blocks.unquoted(line) if self._fence.quoted else line)
                self._code.append(ending)
                return
        self._begin(blocks.classify(line, in_text=self._in_paragraph), ending=ending)

    def _begin(self, line: Line, *, ending: str) -> None:
        """Begins the block of a line or goes on with the one that is open. No ``ending``: the line may go on."""
        text = self._text
        if line.kind is Kind.TEXT and text is not None and (text.quoted or not line.quoted):
            text.add("\n" + line.body)
            self._in_line = not ending
            return
        self._close_text(ended=True)
        if line.kind is not Kind.ROW:
            self._close_table()
        if line.kind in (Kind.TEXT, Kind.ITEM):
            self._begin_text(line, ending=ending)
        elif line.kind is Kind.ROW:
            self._add_row(line.body, ending)
        elif line.kind is Kind.HEADING:
            self._in_list = False
            self._page.write(line.prefix)
            self._page.whole(line.body.strip(), self._like(Block.HEADING, line.prefix.lstrip()))
            self._page.write(ending)
        else:
            self._in_list = self._in_list and line.kind is not Kind.RULE
            self._page.write(line.prefix + inline.leaks_removed(line.body) + ending)
            if line.fence:
                self._fence = line

    def _begin_text(self, line: Line, *, ending: str) -> None:
        if line.kind is Kind.ITEM and not self._in_list:
            self._groups += 1
        self._in_list = line.kind is Kind.ITEM
        kind = Block.ITEM if self._in_list else Block.PARAGRAPH
        like = self._like(kind, line.prefix, group=self._groups - 1 if self._in_list else -1)
        self._text = _TextBlock(like, line.quoted)
        self._text.add(line.body)
        self._in_line = not ending
        self._page.write(line.prefix)

    def _like(self, kind: Block, prefix: str = "", group: int = -1, context: str = "") -> Statement:
        """What the statements of a new block have in common."""
        self._blocks += 1
        return Statement(Claim("", Span(0, 0)), kind, self._blocks - 1, prefix, group, context)

    def _close_text(self, *, ended: bool) -> None:
        """Parses what is left of the open text block. ``ended``: another line follows it."""
        text, self._text = self._text, None
        if text is None:
            return
        self._cut(text, final=True, ended=ended)
        if not self._in_line:
            self._page.write("\n")
        self._in_line = False

    def _cut(self, text: _TextBlock, *, final: bool = False, ended: bool = False) -> bool:
        """Gives out the sentences of the text block that are certain; whether there were any."""
        found = clean(text.source(), self._passages, start=text.start, final=final)
        marked = {run.at for run in found.runs}
        ends = list(sentences.ends(found.mask, marked=marked, breaks=found.breaks, final=final))
        if final:
            ends.append(len(found.text))
        elif ends:
            text.forget(found.source_of(ends[-1]))
        self._page.sentences(found, ends, text.like, last_complete=ended or not final)
        return bool(ends)

    def _add_row(self, body: str, ending: str) -> None:
        self._in_list = False
        if self._header is None and self._row is not None and blocks.is_alignment(body):
            lead, inner, tail = blocks.cells(self._row)
            self._page.write(lead)
            self._header = self._page.unclaimed(inner)
            self._page.write(f"{tail}\n{body}{ending}")
            self._row = None
        elif self._header is not None:
            self._write_row(body, self._header, ending)
        else:
            self._close_table()
            self._groups += 1
            self._row = body
            self._row_ending = ending

    def _write_row(self, row: str, header: str, ending: str) -> None:
        lead, inner, tail = blocks.cells(row)
        self._page.write(lead)
        self._page.whole(inner, self._like(Block.TABLE, group=self._groups - 1, context=header))
        self._page.write(tail + ending)

    def _close_table(self) -> None:
        if self._row is not None:
            self._write_row(self._row, "", self._row_ending)
        self._row = self._header = None

    def _close_code(self, *, complete: bool) -> None:
        if self._fence is None:
            return
        code = inline.leaks_removed("".join(self._code))
        body = code.removesuffix("\n")
        if body.strip():
            like = self._like(Block.CODE, self._fence.fence)
            if not complete:
                like = Statement(Claim("", Span(0, 0), complete=False), like.kind, like.block, like.prefix)
            self._page.verbatim(body, like)
            self._page.write(code[len(body) :])
        else:
            self._page.write(code)
        self._fence, self._code = None, []
