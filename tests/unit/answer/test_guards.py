"""Guards: what each rejects, what it lets by, and that none raises or takes long on any text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serving.answer.guards.rejecting import GUARDS, Reading, reject
from serving.answer.types import Reason


def reason(claim: str, evidence: str) -> Reason | None:
    rejection = reject(claim, evidence)
    return rejection.reason if rejection else None


@pytest.mark.parametrize(
    ("claim", "evidence"),
    [
        ("It is 330 m.", "It is 330 metres."),
        ("It has 1,000 rooms.", "It has 1000 rooms."),
        ("It has 1,000 rooms.", "It has 1 000 rooms."),
        ("It weighs 1000.5 kg.", "It weighs 1.000,5 kg."),
        ("It has ٣٠ rooms.", "It has 30 rooms."),
        ("It has ３０ rooms.", "It has thirty rooms."),
        ("It has twenty-one rooms.", "It has 21 rooms."),
        ("It has 205 rooms.", "It has two hundred and five rooms."),
        ("It has 12 rooms.", "It has a dozen rooms."),
        ("Half of it is gone.", "50% of it is gone."),
        ("It lasted five decades.", "It lasted 50 years."),
        ("It is between 80% and 90%.", "It is 85%."),
        ("It is between 80% and 90%.", "It is 80–90 %."),
        ("More than 300 came.", "Exactly 312 came."),
        ("About 330 came.", "Exactly 329 came."),
        ("It cost $1.5 million.", "It cost $1,512,000."),
        ("It is 5 km away.", "It is 5000 m away."),
        ("It came 3rd.", "It came third."),
        ("It has three parts.", "It has a head, a body and a tail."),
        ("It lasted 4 years.", "It lasted from 1994 to 1998."),
        ("It ended on March 3, 2020.", "It ended on 3 March 2020."),
        ("It ended on 2020-03-03.", "It ended on the 3rd of March 2020."),
        ("It ended in March 2020.", "It ended on 2020-03-03."),
        ("It was built in the 1990s.", "It was built in 1994."),
        ("It was built in the 19th century.", "It was built in 1850."),
        ("It may rain.", "It may rain."),
        ("The door is not open.", "The door is closed."),
        ("It isn't safe.", "It is never safe."),
        ("It is not safe.", "It is unsafe."),
        ("He is not unable to pay.", "He is not unable to pay, he says."),
        ("It is not useless.", "It is useful."),
        ("It does not understand Latin.", "It does not read or understand Latin."),
        ("She was never on a magazine cover.", "She has never appeared on the cover of a fashion magazine."),
        ("A is older than B.", "B is younger than A."),
        ("The door is open.", "The door is open; the window is closed."),
        ("Most birds fly.", "All birds fly."),
        ("It has at least 5 rooms.", "It has more than 5 rooms."),
        ("Use os.path.join for it.", "os.path.join joins"),
        ("Use itertools.chain.", "itertools > chain\nchain joins"),
        ("Call `read_csv()` first.", "read_csv reads"),
        ("The player Ashton Kutcher won.", "Kutcher won."),
        ("The Americans won.", "America's team won."),
        ("The WHO agreed.", "The World Health Organization agreed."),
        ("The World Health Organization agreed.", "The WHO agreed."),
        ('She called it "a bad idea".', "He heard her call it a bad  idea!"),
        ("It is in José's house.", "It is in the house of Jose."),
        ("Alice follows Bob.", "Bob is followed by Alice."),
        ("Alice follows Bob.", "Bob follows Alice, and Alice follows Bob."),
        ("Alice met Bob.", "Bob met Alice."),
    ],
)
def test_what_the_evidence_tells_is_let_by(claim: str, evidence: str) -> None:
    assert reject(claim, evidence) is None


@pytest.mark.parametrize(
    ("claim", "evidence", "why"),
    [
        ("It is 3.5 m.", "It is 3.4 m, or 5.", Reason.NUMBER_MISMATCH),
        ("It has twenty rooms.", "It has 30 rooms.", Reason.NUMBER_MISMATCH),
        ("It is 85%.", "It is between 80% and 90%.", Reason.NUMBER_MISMATCH),
        ("It is between 80% and 90%.", "It is 95%.", Reason.NUMBER_MISMATCH),
        ("It needs Python 3.11.4.", "It needs Python 3.11.5.", Reason.NUMBER_MISMATCH),
        ("It came 3rd.", "It came fourth.", Reason.NUMBER_MISMATCH),
        ("It is 5 km away.", "It is 5 miles away.", Reason.UNIT_MISMATCH),
        ("It cost $5.", "It cost €5.", Reason.UNIT_MISMATCH),
        ("It took 3 years.", "It took three months. 3. It ended.", Reason.UNIT_MISMATCH),
        ("It has 8 GB.", "It has 8 MB.", Reason.UNIT_MISMATCH),
        ("It took 5 months.", "It took five years.", Reason.UNIT_MISMATCH),
        ("It was built in 1899.", "It was built in 1889.", Reason.DATE_MISMATCH),
        ("It ended on March 4, 2020.", "It ended on 3 March 2020.", Reason.DATE_MISMATCH),
        ("It ended in April 2020.", "It ended on 2020-03-03.", Reason.DATE_MISMATCH),
        ("It was built in the 1980s.", "It was built in 1994.", Reason.DATE_MISMATCH),
        ("It was built in the 18th century.", "It was built in 1850.", Reason.DATE_MISMATCH),
        ("It opens on Monday.", "It opens on Tuesday.", Reason.DATE_MISMATCH),
        ("It is not safe.", "It is safe.", Reason.NEGATION_MISMATCH),
        ("It is not safe.", "It is safe. The door is not red.", Reason.NEGATION_MISMATCH),
        ("The tower is safe.", "The tower is not safe.", Reason.NEGATION_MISMATCH),
        ("The race was not cancelled.", "The race was cancelled in May.", Reason.NEGATION_MISMATCH),
        ("He is not unable to pay.", "He can not pay.", Reason.NEGATION_MISMATCH),
        ("It is not the team with the ball.", "A is the team with the ball, B that without.", Reason.NEGATION_MISMATCH),
        ("Prices increased in spring.", "Prices decreased in spring.", Reason.POLARITY_MISMATCH),
        ("Smoking is allowed inside.", "Smoking is forbidden inside.", Reason.POLARITY_MISMATCH),
        ("The option is enabled.", "The option is disabled.", Reason.POLARITY_MISMATCH),
        ("All birds here fly.", "Most birds here fly.", Reason.QUANTIFIER_MISMATCH),
        ("Most birds here fly.", "Some birds here fly.", Reason.QUANTIFIER_MISMATCH),
        ("Only birds here fly.", "The birds here fly.", Reason.QUANTIFIER_MISMATCH),
        ("The price is higher in spring.", "The price is lower in spring.", Reason.COMPARATIVE_MISMATCH),
        ("It was the first to win.", "It was the last to win.", Reason.COMPARATIVE_MISMATCH),
        ("It has at least 5 rooms.", "It has at most 5 rooms.", Reason.COMPARATIVE_MISMATCH),
        ("Use itertools.chain.", "itertools\nislice slices", Reason.NAME_MISMATCH),
        ("The man visited Berlin.", "The man visited Paris.", Reason.NAME_MISMATCH),
        ('She called it "a bad idea".', "She called it a good idea.", Reason.NAME_MISMATCH),
        ("Alice follows Bob.", "Bob follows Alice.", Reason.ROLE_MISMATCH),
        ("Alice was followed by Bob.", "Alice follows Bob.", Reason.ROLE_MISMATCH),
    ],
)
def test_what_the_evidence_contradicts_is_rejected(claim: str, evidence: str, why: Reason) -> None:
    assert reason(claim, evidence) is why


def test_a_rejection_says_which_words_decided() -> None:
    rejection = reject("It is 5 km away.", "It is 5 miles away.")
    assert rejection is not None
    assert rejection.words == ("5 km", "5 miles")


def test_evidence_that_does_not_say_what_it_is_about_leaves_one_name_open() -> None:
    claim, told = "The tower in Lyon was built in 1889.", "It was built in 1889."
    assert reason(claim, told) is None
    assert reason(claim, f"Paris > Tower\n{told}") is Reason.NAME_MISMATCH
    assert reason("It is in Lyon.", "It is in Paris.") is Reason.NAME_MISMATCH


_WORDS = (
    "not never no the Alice Bob follows followed by is was 5 km miles 1,000 twenty one hundred and between March 3 "
    "2020 1990s 19th century $ % - – . , all most some only first last more less than at "
    "least \" ' ( ) a.b COVID-19 一 ٣"
).split()
TEXTS = st.text(max_size=200) | st.lists(st.sampled_from(_WORDS), max_size=40).map(" ".join)


@given(TEXTS, TEXTS)
def test_no_text_raises(claim: str, evidence: str) -> None:
    for guard in GUARDS.values():
        guard(Reading(claim), Reading(evidence))


@given(TEXTS)
def test_a_reading_keeps_every_token_where_it_stands(text: str) -> None:
    reading = Reading(text)
    assert all(reading.text[token.start : token.end] == token.text for token in reading.tokens)
    assert [token.start for token in reading.tokens] == sorted(token.start for token in reading.tokens)


@pytest.mark.parametrize("name", ["numbers", "dates", "names", "quantifiers"])
@given(st.lists(st.sampled_from(_WORDS), max_size=40).map(" ".join))
def test_a_text_entails_itself(name: str, text: str) -> None:
    assert GUARDS[name](Reading(text), Reading(text)) is None


@pytest.mark.parametrize("piece", ["1,", "1 000 ", "twenty and ", "not ", '"a ', "a.", "_", "9", "a'", "May 5 ", "Aa "])
def test_a_hundred_kilobytes_are_read(piece: str) -> None:
    text = piece * (100_000 // len(piece))
    reject(text, text)


def test_a_signature_above_a_sentence_is_no_part_of_it() -> None:
    evidence = (
        "shutil.rmtree\nrmtree(path, *, dir_fd=None)\n\nRecursively delete a directory tree.\n\nIf dir_fd is not None"
    )
    assert reject("Recursively delete a directory tree.", evidence) is None
