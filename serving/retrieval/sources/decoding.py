"""Bytes as text, in the encoding they say they are in, or a reason why not. Nothing is guessed."""

from __future__ import annotations

import codecs
import re

from serving.retrieval.documents import SkipReason

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark its own begins with
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)

_CHARSET = re.compile(rb"<meta[^>]{0,500}?charset\s*=\s*[\"']?\s*([\w.:+-]{1,40})", re.IGNORECASE)
_XML_ENCODING = re.compile(rb"\A\s*<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([\w.:+-]{1,40})")
_LOOKED_AT = 4096

# Python's other codecs are no encodings of pages: some are slow by design, some run on text.
_PAGE_CODEC = re.compile(r"(?:utf-?8|ascii|iso|cp|koi8|gb|big5|shift|euc|mac-|tis|johab|hz)")
# What a page means by these is wider than what they are, says the WHATWG's encoding standard.
_MEANT = {"ascii": "cp1252", "iso8859-1": "cp1252", "iso8859-9": "cp1254", "gb2312": "gb18030", "gbk": "gb18030"}


class SkipError(Exception):
    """The file is passed over, for ``reason``. ``str`` of it is the detail."""

    def __init__(self, reason: SkipReason, detail: str = "") -> None:
        super().__init__(detail)
        self.reason = reason


def decode(content: bytes, declared: str | None = None) -> str:
    """The text of ``content``, lines ended by newlines: by its byte order mark, else as ``declared``, else as UTF-8.

    Raises :class:`SkipError`: binary, bad encoding or empty.
    """
    marked = next(((mark, name) for mark, name in _MARKS if content.startswith(mark)), None)
    if marked is None and b"\0" in content:
        raise SkipError(SkipReason.BINARY, f"a zero byte at offset {content.index(0)}")
    encoding = marked[1] if marked else declared or "utf-8"
    try:
        text = content[len(marked[0]) if marked else 0 :].decode(encoding)
    except UnicodeDecodeError as error:
        raise SkipError(SkipReason.BAD_ENCODING, _said(error, encoding, declared)) from error
    if "\0" in text:
        raise SkipError(SkipReason.BINARY, f"a zero character at offset {text.index(chr(0))}")
    if not text.strip():
        raise SkipError(SkipReason.EMPTY)
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _said(error: UnicodeDecodeError, encoding: str, declared: str | None) -> str:
    where = f"not {encoding}: byte 0x{error.object[error.start]:02x} at offset {error.start}"
    return where if declared else f"{where}; convert it with `iconv -f ENCODING -t UTF-8`"


def declared_charset(page: bytes) -> str | None:
    """The encoding that an HTML page declares at its beginning, None when it declares none.

    Raises :class:`SkipError` when nothing is known by that name.
    """
    beginning = page[:_LOOKED_AT]
    match = _CHARSET.search(beginning) or _XML_ENCODING.search(beginning)
    if match is None:
        return None
    label = match[1].decode("ascii", "replace")
    try:
        name = codecs.lookup(label).name
    except LookupError as error:
        raise SkipError(SkipReason.BAD_ENCODING, f"declares the unknown charset {label}") from error
    if name.startswith(("utf-16", "utf-32")):
        return "utf-8"  # the declaration could be read, so it is not that
    if not _PAGE_CODEC.match(name):
        raise SkipError(SkipReason.BAD_ENCODING, f"declares {label}, which is no charset of a page")
    return _MEANT.get(name, name)
