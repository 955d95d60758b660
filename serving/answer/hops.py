"""Surface cues that a question needs more than one look: comparisons, chains, several questions in one, whole sets.

Each rule is a pattern over :attr:`~serving.answer.reading.Reading.line`, and what its groups matched is the cue. Gaps
are bounded, so that the time is linear in the length of the question. Many questions that need several looks show no
cue at all; they go to a single pass.
"""

from __future__ import annotations

import re

from serving.answer.reading import AUXILIARIES, Reading

_LONGEST_CUE = 80
_NUMBER = r"(?:two|three|four|five|six|seven|eight|nine|ten|twelve|fifteen|twenty|\d{1,3})"
_MOST = r"(?:most|least|best|worst|largest|biggest|smallest|highest|lowest|tallest|oldest|longest|richest)"
_MORE = r"(?:more|less|fewer|better|worse|(?!other|rather|whether|never)\w{2,12}er)"
# Without "which" or "than" beside it, "water" could pass for a comparative: these cannot be anything else.
_SURELY_MORE = (
    "(?:better|worse|more|less|fewer|(?:fast|slow|bigg|small|larg|old|young|tall|short|long|cheap|easi|hard|saf|strong"
    "|heavi|light|high|low|earli|rich|new|health|wealth|warm|cold)i?er)"
)
_WHICH = r"(?:which|who|whose)"
_WH = r"(?:what|who|whom|when|where|why|how|which)"
_YES_OR_NO = "(?:is|are|was|were|do|does|did|should|would|will|can)"


def _gap(least: int, most: int) -> str:
    """Between ``least`` and ``most`` words or marks, within one question."""
    return rf"(?:[^ ?]\S* ){{{least},{most}}}"


_COMPARISON = (
    r" (compare(?: to| with)?|compare[sd]|comparing|comparison) (?!(?:operator|function|method)s? )",
    # "VS Code" and "VS 2022" are editors.
    r" \S+ (?:[.] )?(vs|versus) (?!code |studio |20\d\d )",
    r" ((?:difference|similarit(?:y|ie)|distinction)s? (?:\S+ ){0,3}between) ",
    r" (differs? from|in common|pros and cons|advantages and disadvantages|trade-?offs?) ",
    r" (both) ",
    # "more than 5 goals" and "more than any other" compare nothing that has to be looked up twice.
    rf" ({_MORE}) {_gap(0, 8)}(than) (?!(?:any|half|one|a hundred|a million) |{_NUMBER} |\d)",
    rf" ({_WHICH}) {_gap(0, 6)}(first|last|{_MORE}) {_gap(1, 12)}(or) ",
    rf" ({_WHICH}) (?:of|one|between) {_gap(1, 12)}(or) ",
    rf" ({_WHICH}) {_gap(1, 8)}, {_gap(1, 9)}(or) {_gap(1, 9)}\? $",
    rf"^ (between) {_gap(1, 9)}(and) {_gap(1, 9)}, (?:which|who|whose|what) ",
    rf"^ {_YES_OR_NO} {_gap(0, 8)}({_SURELY_MORE}) {_gap(1, 10)}(or) ",
    rf"^ {_YES_OR_NO} {_gap(1, 10)}(or) {_gap(1, 8)}({_SURELY_MORE}) \? $",
    rf" (and) {_gap(1, 12)}(same) ",
    rf" (?:do|did|does) {_gap(1, 8)}(and) {_gap(1, 8)}(share) ",
)
_SEVERAL_QUESTIONS = (
    rf" {_WH} {_gap(2, 30)}(and (?:(?:in|on|by|at|for|of|to) )?{_WH}) ",
    rf" (\?) (?:(?:and|but|also) )?({_WH}) {_gap(1, 60)}\? ",
)
_SET = (
    r" (of each|each of|for each|respective|respectively|(?:along|together) with (?:his|her|its|their)) ",
    # "the last five years" is one stretch of time.
    rf" ((?:top|first|last|past|previous|latest) {_NUMBER} (?:most )?(?!(?:year|month|week|day|hour|minute)s? )\S+) ",
    rf" ({_NUMBER}) {_gap(0, 1)}(?:\S+ with the )?({_MOST}) ",
    rf" (most|least|\w{{3,12}}est) {_gap(0, 8)}(among|out of|of all(?! time)|of these|of those) ",
)
_AGGREGATE = (r" (how many of|what (?:percentage|share|proportion|fraction) of the \S+ that|combined|on average) ",)
_CHAIN = (
    r" (of the) (?:\S+ ){1,3}?(that|who|whose|whom) ",
    rf" (?:by|did|for|from|of|to|with) (the|this) {_gap(1, 4)}(who|whose|whom) ",
)
_SEQUENCE = (rf" (first) {_gap(1, 12)}(?:and )?(then) ",)
_CHANGE = (
    rf" ((?:how|what) (?:has|have|had|did)) {_gap(1, 10)}"
    r"((?:changed?|evolved?|grown|developed|improved|declined) (?:since|over|from|between)) ",
)
_ORDER_IN_TIME = (
    r" (before or after|earlier than|later than) ",
    rf"^ (?:did|had|was|were) {_gap(1, 12)}(before|after) {_gap(1, 8)}(was|were|did|had|became|began|died|ended|won) ",
)

_RULES = tuple(
    (name, re.compile(pattern))
    for name, patterns in (
        ("comparison", _COMPARISON),
        ("several questions", _SEVERAL_QUESTIONS),
        ("set", _SET),
        ("aggregate", _AGGREGATE),
        ("chain", _CHAIN),
        ("sequence", _SEQUENCE),
        ("change", _CHANGE),
        ("order in time", _ORDER_IN_TIME),
    )
    for pattern in patterns
)


def multi_hop(reading: Reading) -> str | None:
    """The cue that makes it multi-hop, such as ``comparison: "compare to"``, or None."""
    for name, pattern in _RULES:
        match = pattern.search(reading.line)
        if match:
            words = " … ".join(group for group in match.groups() if group)
            return f'{name}: "{words[:_LONGEST_CUE]}"'
    return _two_names(reading)


def _two_names(reading: Reading) -> str | None:
    """``Are Random House Tower and 888 7th Avenue used for real estate?``: a yes or no about two names."""
    if reading.opener not in AUXILIARIES:
        return None
    # The opener's own capital says nothing.
    for before, word, after in zip(reading.names[1:], reading.names[2:], reading.names[3:], strict=False):
        if word in {"and", "or"} and _is_name(before) and _is_name(after):
            return f'two names: "{before[:30]} {word} {after[:30]}"'
    return None


def _is_name(word: str) -> bool:
    return word[0].isupper() or word[0].isdigit()
