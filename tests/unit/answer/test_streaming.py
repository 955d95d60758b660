"""The incremental parser: whatever the pieces, the same statements in the same order, and nothing too early."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serving.answer.citations import parse
from serving.answer.statements import Reply, Statement
from serving.answer.streaming import Parser

REPLY = (
    "# The tower\n\nDr. Smith says it was built in 1889 [1][2]. It cost $5 [3], "
    'see `a[0]`.[1]\nHe said "stop [2]." 終わり【1】。「や。」と言った[2]。\n'
    "- One, e.g. x [1].\n  1. Two [9]\nlazily on.\n> Quoted [1-2]\n> on. \n\n"
    "| a | b |\n|---|---|\n| c | d [1] |\n\n```py\nx[1]\r\n```\n\ue200cite\ue202t0\ue201$$y$$[1] 🇯🇵é. [2"
)


def fed(pieces: list[str], passages: int = 3) -> tuple[list[Statement], Reply]:
    parser = Parser(passages)
    found = [statement for piece in pieces for statement in parser.feed(piece)]
    found += parser.finish()
    return found, parser.reply()


def fed_bytes(pieces: list[bytes], passages: int = 3) -> tuple[list[Statement], Reply]:
    parser = Parser(passages)
    found = [statement for piece in pieces for statement in parser.feed_bytes(piece)]
    found += parser.finish()
    return found, parser.reply()


def test_every_pair_of_cuts_gives_the_same_statements() -> None:
    whole = parse(REPLY, 3)
    assert len(whole.statements) > 12
    for first in range(len(REPLY) + 1):
        for second in range(first, len(REPLY) + 1):
            found, reply = fed([REPLY[:first], REPLY[first:second], REPLY[second:]])
            assert tuple(found) == whole.statements, (first, second)
            assert reply == whole, (first, second)


@pytest.mark.parametrize("step", [1, 2, 3, 7])
def test_bytes_cut_anywhere_give_the_same_statements(step: int) -> None:
    data = REPLY.encode()
    found, reply = fed_bytes([data[at : at + step] for at in range(0, len(data), step)])
    assert reply == parse(REPLY, 3)
    assert tuple(found) == reply.statements


PIECES = st.lists(
    st.sampled_from(
        'a|The |it | |\n|\n\n|. |.|! |。|「|」|"|[|]|[1]|[2, 3]|[9]|(|)|([1])|`|``|```\n|~~~|$|$$|\\[|\\]|- |1. |> |# |'
        "e.g. |Dr. |no. |5|é|日本|http://a.b|](|](b)|<|\ue200|\ue201|\r|\r\n|\ud83c|\udff4|---\n|=|,|&".split("|")
    )
    | st.just("| a | b |\n")
    | st.just("|---|---|\n"),
    max_size=24,
)


@given(PIECES, st.integers(0, 12))
def test_any_pieces_give_what_the_whole_gives(pieces: list[str], passages: int) -> None:
    whole = parse("".join(pieces), passages)
    found, reply = fed(pieces, passages)
    assert reply == whole
    assert tuple(found) == whole.statements
    assert fed(list("".join(pieces)), passages)[1] == whole


@pytest.mark.parametrize(
    ("given", "held"),
    [
        ("It ends.", "more of a sentence may come"),
        ("It ends. ", "a marker may come"),
        ("It ends. [", "a marker has begun"),
        ("It ends. [1", "a marker has begun"),
        ("It ends. [1]", "another may come"),
        ("It ends. [1] ", "another may come"),
        ("It costs 3.", "a decimal may come"),
        ("See e.g. ", "no sentence ends here"),
        ("It is `x. Then more of it follows", "code has begun"),
        ("It ends.\n", "a marker may come on a line of its own"),
        ("| a | b |\n", "it may be a header"),
        ("It ends. \ue200cite", "a citation span has begun"),
        ('He said "Go. Then more of it follows', "a quotation has begun"),
    ],
)
def test_nothing_is_given_out_that_might_go_on(given: str, held: str) -> None:
    parser = Parser(3)
    assert parser.feed(given) == [], held
    assert [parser.feed(character) for character in "  "] == [[], []]
    assert parser.finish()


def test_a_sentence_is_given_out_while_the_next_is_written() -> None:
    parser = Parser(3)
    assert parser.feed("The tower was built in 1889 [1]. ") == []
    (statement,) = parser.feed("The museum opened")
    assert (statement.claim.text, statement.claim.chunks) == ("The tower was built in 1889.", (0,))


@pytest.mark.parametrize(
    ("reply", "complete"),
    [
        ("It ends [1].", True),
        ("It ends. [1]", True),
        ("It ends in the", False),
        ("It ends [1", False),
        ("It costs 3.", False),
        ("It costs 3 [1].", True),
        ("It costs 3. [1]", True),
        ("- An item", False),
        ("- An item\n\n", True),
        ("終わり。", True),
        ("```\nx = 1", False),
    ],
)
def test_the_end_of_input_flushes_and_says_whether_the_last_statement_was_cut(reply: str, complete: bool) -> None:
    found, _ = fed(list(reply))
    assert found[-1].claim.complete is complete


@pytest.mark.parametrize(
    ("reply", "passages"),
    [
        ("🇯🇵[1–3]\r([1])\r\\([2])\n", 3),
        (" ---\n\ue200cite\ue202turn0search0\ue201\r\n.  tower .  [1]. |. \\[", 3),
        (" [0]\r\n. ([1],>. ```py\n [1]. was. ?\r\n]( [2].", 3),
        (" [2].\ue201and [2].\\)1. e.g.`wastall]( [2].```\n", 0),
        (" [2].[2])   [2]. \r\xa0([1]).  he [2]. [1]. ", 0),
        ("！.] [1]. os.path.join", 3),
        ("\n\nです\xa0\x00 [2].1.  [1]. *   ([1],[2])\n\nThe", 3),
        ("**［2］ですtall. 「\ue201([1],[2])", 3),
        ("]( [1]. |isDr. です. ([1],[2])\u2028 [2]. Paris. a[0] [2].【1】", 1),
        ("[12345]| [2].。[2][3]U.S..  * ([1],[2]) [1†a]\ue200~~~\n ", 3),
        (". * ([1],[2]) [1]", 3),
    ],
)
def test_replies_that_once_came_out_differently(reply: str, passages: int) -> None:
    whole = parse(reply, passages)
    for cut in range(len(reply) + 1):
        assert fed([reply[:cut], reply[cut:]], passages) == (list(whole.statements), whole)
    assert fed(list(reply), passages) == (list(whole.statements), whole)


@pytest.mark.parametrize("unit", ["`a. B c. ", "[a b. C ", "$$ a. B ", "a. b ", "“a. B ", "x", "| a |"])
def test_time_grows_with_the_reply_however_it_is_fed(unit: str) -> None:
    def took(size: int) -> float:
        text = unit * (size // len(unit))
        best = float("inf")
        for _ in range(3):
            began = time.process_time()
            fed([text[at : at + 3] for at in range(0, len(text), 3)])
            best = min(best, time.process_time() - began)
        return best

    assert took(40_000) < 30 * took(4_000)
