"""Questions and their answers as statements: ``Who built it?`` and ``Alice`` make ``Alice built it.``"""

from __future__ import annotations

import re

_SUBJECT = re.compile(r"^(?:who|what|which(?: one)?) (?P<rest>(?!did\b|does\b|do\b|other\b)\w.*?)\s*\??$", re.I)
_VERB = re.compile(r"\b(?:is|was|are|were|has|had|can|could|will|would|\w{3,}ed|made|led|won|gave|became|took|began)\b")
_VERB_FIRST = re.compile(r"^(?:is|was|are|were|has|had|can|\w+ed|\w{3,}s|made|led|won|gave|became|took|began|wrote)\b")
_COUNT = re.compile(r"^how many (?P<rest>(?!.*\b(?:did|does|do)\b).+?)\s*\??$", re.I)
_WHEN = re.compile(r"^(?P<asked>when|where|in (?:what|which) (?:year|country|city|month)) (?P<be>was|were|is|are) "
                   r"(?P<thing>.{3,60}?) (?P<done>\w+ed|born|built|made|held|won|led|located|found|written)"
                   r"(?P<rest>(?: (?:by|for|as|to|with) [^?]+)?)\s*\?$", re.I)  # fmt: skip


def declared(question: str, answer: str) -> str | None:
    """The statement that the answer makes of the question; None where rules cannot tell."""
    question, answer = " ".join(question.split()), answer.strip().rstrip(".")
    if not answer or len(answer.split()) > 12 or "," in question[:25]:
        return None
    if match := _COUNT.match(question):
        return _sentence(f"{answer} {match['rest']}" if answer[-1].isdigit() or len(answer.split()) == 1 else "")
    if match := _WHEN.match(question):
        where = "" if answer.lower().startswith(("in ", "on ", "at ")) else "in "
        be, done, rest = match["be"].lower(), match["done"], match["rest"]
        return _sentence(f"{match['thing']} {be} {done}{rest} {where}{answer}")
    match = _SUBJECT.match(question)
    if match is None or re.search(r"\b(?:did|does|do)\b", match["rest"]):
        return None
    rest = match["rest"]
    if not _VERB_FIRST.match(rest):
        verb = _VERB.search(rest)  # after the kind of thing that is asked for
        if verb is None or not 0 < len(rest[: verb.start()].split()) <= 4:
            return None
        rest = rest[verb.start() :]
    return _sentence(f"{answer} {rest}")


def _sentence(text: str) -> str | None:
    return f"{text[:1].upper()}{text[1:].rstrip('?. ')}." if len(text.split()) >= 4 else None
