"""What a reader sees of a character, and which character it looks like: two tables for ``str.translate``.

They hold every character, and fill as they are asked. Both are lookups: linear in the text, and a character's entry
does not depend on its neighbours, so nothing can be hidden behind them.
"""

from __future__ import annotations

import unicodedata

_UNSEEN = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180e\u180f\u2800\u3164\uffa0\ufff9\ufffa\ufffb")
_UNSEEN_RANGES = (range(0xFE00, 0xFE10), range(0xE0000, 0xE1000))  # variation selectors; tags and all of their block
_SPELT_OUT = dict.fromkeys("«»《》⟪⟫", '"')  # quotation marks of their languages, and a fence to a model
_SPELT_OUT |= {"≪": "<<", "⪡": "<<", "⋘": "<<<", "≫": ">>", "⪢": ">>", "⋙": ">>>"}
_SPELT_OUT |= {"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st"}
_SPELT_OUT |= {"\t": "\t", "\n": "\n", **dict.fromkeys("\r\v\f\x1c\x1d\x1e\x85\u2028\u2029", "\n")}

# Beyond what NFKD folds. Letters: those of other scripts that are drawn as a small Latin one.
_LOOKS_LIKE = {
    look_alike: character
    for character, look_alikes in {
        "<": "‹⟨〈˂ᐸ❮❬❰⧼⦑",
        ">": "›⟩〉˃ᐳ❯❭❱⧽⦒",
        "[": "【〔〖〚⟦⁅❲⦋⦍⦏⟬⸢⎡",
        "]": "】〕〗〛⟧⁆❳⦌⦎⦐⟭⸣⎦",
        "|": "∣ǀ│┃⏐❘¦׀ꞁ║",
        "_": "▁‿⁔ˍ",
        "/": "⁄∕⧸╱",
        ":": "∶꞉ː׃˸",
        "a": "аɑαᴀ", "b": "вьᴃʙ", "c": "сϲᴄ", "d": "ԁɗᴅ", "e": "єеεᴇ", "f": "ғꜰ", "g": "ɡգɢ",
        "h": "һнʜ", "i": "іιıɪ", "j": "јϳᴊ", "k": "кκᴋ", "l": "ӏⅼʟ", "m": "мᴍ", "n": "ոηɴ",
        "o": "оοσօᴏ", "p": "рρᴘ", "q": "ԛ", "r": "гʀ", "s": "ѕꜱ", "t": "тτᴛ", "u": "սυᴜ",
        "v": "νѵᴠ", "w": "ԝѡω", "x": "хχ", "y": "уγʏ", "z": "ᴢ",
    }.items()
    for look_alike in look_alikes
}  # fmt: skip


def is_mark(character: str) -> bool:
    """Whether the character is drawn on the one before it."""
    return unicodedata.category(character) in ("Mn", "Me")


class _Visible(dict[int, str]):
    """A character as it is seen: nothing when it is not, a line break for all that break lines, itself mostly."""

    def __missing__(self, code: int) -> str:
        self[code] = seen = self._seen(code)
        return seen

    @staticmethod
    def _seen(code: int) -> str:
        character = chr(code)
        if character in _SPELT_OUT:
            return _SPELT_OUT[character]
        if character in _UNSEEN or any(code in unseen for unseen in _UNSEEN_RANGES):
            return ""
        category = unicodedata.category(character)
        if category == "Cs":
            return "\ufffd"
        return "" if category in ("Cc", "Cf", "Co") else character


class _Folded(dict[int, str]):
    """The one small character that a visible one looks like; a blank for marks, which NFKD takes off letters too."""

    def __missing__(self, code: int) -> str:
        self[code] = folded = self._folded(chr(code))
        return folded

    @staticmethod
    def _folded(character: str) -> str:
        if is_mark(character):
            return " "
        base = [part for part in unicodedata.normalize("NFKD", character) if not is_mark(part)]
        one = base[0] if len(base) == 1 else character
        one = _LOOKS_LIKE.get(one, one)
        small = one.lower()
        one = small if len(small) == 1 else one
        return _LOOKS_LIKE.get(one, one)


VISIBLE = _Visible()
FOLDED = _Folded()
"""One character for one: places in the folded text are places in the visible one."""
