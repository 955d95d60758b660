"""Structured replies: read as they are written, cut anywhere as a whole; their schema is that of their type."""

from __future__ import annotations

import json
from dataclasses import replace

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from serving.answer.citations import parse
from serving.answer.jsonstream import ObjectReader, StringDecoder
from serving.answer.structured import StructuredReply, bounded, schema
from serving.answer.unwrapping import StructuredParser

ESCAPES = st.sampled_from(
    [
        "\\n",
        '\\"',
        "\\\\",
        "\\/",
        "\\u00e9",
        "\\ud83d\\ude00",
        "\\ud83d",
        "\\ude00",
        "\\\\ud83d",
        "\\uD83D\\n",
        "😀",
        "a",
        " ",
    ]
)


def pieces_of(text: str, cuts: list[int]) -> list[str]:
    at = sorted({cut % (len(text) + 1) for cut in cuts})
    return [text[start:end] for start, end in zip([0, *at], [*at, len(text)], strict=True)]


CUTS = st.lists(st.integers(0, 10_000), max_size=40)


@settings(max_examples=400)
@given(st.one_of(st.text().map(lambda text: json.dumps(text)[1:-1]), st.lists(ESCAPES).map("".join)), CUTS)
def test_a_string_in_any_pieces_is_what_json_loads_makes_of_the_whole(body: str, cuts: list[int]) -> None:
    decoder = StringDecoder()
    decoded = ""
    for piece in pieces_of(f'{body}"', cuts):
        assert decoder.rest in (None, "")
        decoded += decoder.feed(piece) if decoder.rest is None else ""
    assert decoded == json.loads(f'"{body}"')
    assert decoder.rest == ""


@given(st.lists(ESCAPES, min_size=1).map("".join))
def test_no_letter_is_held_longer_than_an_escape(body: str) -> None:
    decoder = StringDecoder()
    at_once = StringDecoder().feed(body)
    by_letter = "".join(decoder.feed(letter) for letter in body)
    assert by_letter == at_once
    assert len(json.loads(f'"{body}"')) - len(by_letter) <= 1


@pytest.mark.parametrize(("body", "before"), [("a\\x", "a"), ("\\u12g4", ""), ("b\\ud83d\\q\\x", "b\ud83d")])
def test_nothing_is_read_from_what_is_no_escape_on(body: str, before: str) -> None:
    at_once, by_letter = StringDecoder(), StringDecoder()
    assert at_once.feed(body) == before
    assert "".join(by_letter.feed(letter) for letter in body if not by_letter.broken) == before
    assert at_once.broken
    assert by_letter.broken


VALUES = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(-99, 99), st.floats(allow_nan=False, allow_infinity=False), st.text()
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)),
    max_leaves=6,
)
OBJECTS = st.dictionaries(st.one_of(st.sampled_from(["text", "cites", "a"]), st.text(max_size=4)), VALUES, max_size=5)


@settings(max_examples=4000)
@given(OBJECTS, st.sampled_from([None, 1]), st.booleans(), st.sampled_from(["", "Here: ", "```json\n", "{so} "]), CUTS)
def test_an_object_in_any_pieces_gives_its_members(
    members: dict[str, object], indent: int | None, ascii_only: bool, before: str, cuts: list[int]
) -> None:
    written = before + json.dumps(members, indent=indent, ensure_ascii=ascii_only) + "\n``` } {"
    reader = ObjectReader("text")
    streamed = "".join(reader.feed(piece) for piece in pieces_of(written, cuts))
    assert reader.closed
    assert reader.members == json.loads(json.dumps(members))
    assert streamed == (members["text"] if isinstance(members.get("text"), str) else "")


@given(st.text(alphabet=st.sampled_from(list('{}[]",:\\ut 1ae\n')), max_size=60), CUTS)
def test_any_text_is_read_without_an_error_and_cut_anywhere_alike(written: str, cuts: list[int]) -> None:
    whole, cut = ObjectReader("t"), ObjectReader("t")
    streamed = whole.feed(written)
    assert "".join(cut.feed(piece) for piece in pieces_of(written, cuts)) == streamed
    assert (cut.members, cut.closed) == (whole.members, whole.closed)


# The type and its schema


@given(st.integers(1, 12), st.booleans(), st.lists(st.integers(-2, 15), max_size=14), st.text(), st.booleans())
def test_the_schema_takes_what_the_type_takes(
    passages: int, declined: bool, cites: list[int], text: str, reasoned: bool
) -> None:
    reply = {
        "declined": declined,
        "decline_reason": "not_in_passages" if reasoned else None,
        "cites": cites,
        "text": text,
    }
    described = json.loads(schema(passages))
    takes = jsonschema.Draft202012Validator(described).is_valid(reply)
    assert takes == (all(1 <= number <= passages for number in cites) and len(cites) <= passages)
    if takes:
        assert bounded(passages).model_validate_json(json.dumps(reply)).model_dump(mode="json") == reply
    else:
        with pytest.raises(ValidationError):
            bounded(passages).model_validate_json(json.dumps(reply))
    for member in reply:
        lacking = {key: value for key, value in reply.items() if key != member}
        assert not jsonschema.Draft202012Validator(described).is_valid(lacking)


def test_what_decides_how_the_text_is_read_comes_before_it() -> None:
    assert list(json.loads(schema(3))["properties"]) == list(StructuredReply.model_fields)
    assert list(StructuredReply.model_fields)[-1] == "text"
    assert schema(3) is schema(3)


# Replies


def reply_of(text: str, cites: list[int], *, declined: bool = False) -> str:
    return json.dumps({"declined": declined, "decline_reason": None, "cites": cites, "text": text})


SENTENCES = ["The tower is tall.", "It was built in 1889 [2].", "- Item one.", "## Head", "Costs $5.", "Sure [9]."]


@given(st.lists(st.sampled_from(SENTENCES), max_size=5), st.lists(st.integers(0, 5), max_size=4), st.booleans(), CUTS)
def test_a_reply_in_any_pieces_is_parsed_as_its_text_with_what_it_cites(
    sentences: list[str], cites: list[int], text_first: bool, cuts: list[int]
) -> None:
    text = "\n".join(sentences)
    members = json.loads(reply_of(text, cites))
    if text_first:
        members = dict(reversed(members.items()))
    parser = StructuredParser(3)
    given_out = [s for piece in pieces_of(json.dumps(members), cuts) for s in parser.feed(piece)]
    given_out += parser.finish()
    reply, plain = parser.reply(), parse(text, 3)
    assert given_out == list(reply.statements)
    assert reply.text == plain.text
    assert len(reply.statements) == len(plain.statements)
    chunks = {number - 1 for number in cites if 1 <= number <= 3}
    fabricated = tuple(str(number) for number in dict.fromkeys(cites) if not 1 <= number <= 3)
    for found, bare in zip(reply.statements, plain.statements, strict=True):
        assert found.claim.chunks == tuple(sorted(chunks | set(bare.claim.chunks)))
        assert found.claim.fabricated == (*fabricated, *bare.claim.fabricated)
        assert (
            replace(found, claim=replace(found.claim, chunks=bare.claim.chunks, fabricated=bare.claim.fabricated))
            == bare
        )
    assert reply.fabricated == (*fabricated, *plain.fabricated)
    assert parser.closed


def test_a_sentence_is_given_out_while_the_text_goes_on() -> None:
    parser = StructuredParser(3)
    statements = parser.feed(
        '{"declined":false,"decline_reason":null,"cites":[3,1],"text":"One is tall. Two is small, and so is'
    )
    assert [(s.claim.text, s.claim.chunks) for s in statements] == [("One is tall.", (0, 2))]


def test_nothing_is_given_out_before_it_is_known_whether_the_reply_declines_and_what_it_cites() -> None:
    parser = StructuredParser(3)
    assert parser.feed('{"text": "One is tall. Two is small. ", "cites": [1]') == []
    assert parser.feed(', "declined": true}') == []
    assert parser.finish() == []
    assert parser.declined


@pytest.mark.parametrize(
    ("written", "declines"),
    [
        ('{"declined": true, "decline_reason": "not_in_passages", "cites": [], "text": ""}', True),
        ('{"declined": true', False),
        ('{"declined": true,', True),
        ('{"declined": "maybe", "cites": [1], "text": "A b."}', False),
        ('{"declined": false, "cites": [1], "text": "~NO_ANSWER: the passages do not answer this question."}', True),
        ("no object at all", False),
    ],
)
def test_what_declines(written: str, declines: bool) -> None:
    parser = StructuredParser(3)
    parser.feed(written)
    parser.finish()
    assert parser.declined == declines


@pytest.mark.parametrize("cites", ['"one"', "[1.5]", "null", "{}"])
def test_citations_that_are_none_leave_the_text_uncited(cites: str) -> None:
    parser = StructuredParser(3)
    parser.feed(f'{{"declined": false, "cites": {cites}, "text": "One is tall. Two is small [2]."}}')
    parser.finish()
    assert [s.claim.chunks for s in parser.reply().statements] == [(), (1,)]
