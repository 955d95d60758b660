"""The API's description: every error of the table, every header, and examples that hold."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter

from serving.answer import grounding
from serving.answer.citations import parse
from serving.answer.codes import CODES, TABLE
from serving.answer.wire import Answer
from serving.gateway import examples
from serving.gateway.errors import ErrorOut
from serving.gateway.openapi import GET_ERRORS, POST_ERRORS
from serving.gateway.phases import DESCRIBED as PHASE_HEADERS
from serving.gateway.routes.answer import AnswerRequest
from serving.gateway.routes.check import CheckRequest, CheckResponse
from serving.gateway.routes.embeddings import EmbeddingsRequest, EmbeddingsResponse
from serving.gateway.routes.health import Health, Readiness
from serving.gateway.routes.rerank import RerankRequest, RerankResponse
from serving.gateway.routes.search import SearchRequest, SearchResponse
from serving.gateway.stream_events import KINDS

from .fakes import FakeBackend
from .test_http import api_over
from .test_stream_events import read

Json = dict[str, Any]


@pytest.fixture(scope="module")
def document() -> Json:
    return api_over(FakeBackend()).openapi()


def operations(document: Json) -> dict[str, Json]:
    return {operation["operationId"]: operation for path in document["paths"].values() for operation in path.values()}


def examples_of(content: Json) -> list[Any]:
    return [one["value"] for one in content["application/json"]["examples"].values()]


def test_each_operation_has_a_name_a_tag_and_words(document: Json) -> None:
    found = operations(document)
    assert set(found) == {
        *("answer", "search", "gaps", "health", "readiness"),
        *("rerank", "rerank_v2", "rerank_bare", "check", "embeddings"),
    }
    tags = {tag["name"] for tag in document["tags"]}
    for operation in found.values():
        assert operation["summary"]
        assert operation["description"]
        assert set(operation["tags"]) <= tags


def test_each_operation_says_how_it_can_fail(document: Json) -> None:
    found = operations(document)
    posts = dict.fromkeys(("answer", "search", "rerank", "rerank_v2", "check", "embeddings"), POST_ERRORS)
    for name, statuses in {**posts, "health": GET_ERRORS}.items():
        for status in statuses:
            assert found[name]["responses"][str(status)] == {"$ref": f"#/components/responses/Error{status}"}
        assert set(found[name]["responses"]) == {"200", *map(str, statuses)}
    assert set(found["readiness"]["responses"]) == {"200", "503", *map(str, GET_ERRORS)}


@pytest.mark.parametrize("code", CODES, ids=lambda code: code.name)
def test_each_code_is_described_with_an_example(document: Json, code: Any) -> None:
    response = document["components"]["responses"][f"Error{code.status}"]
    assert f"`{code.name}`: {code.means} {code.remedy}" in response["description"]
    example = response["content"]["application/json"]["examples"][code.name]["value"]
    body = ErrorOut.model_validate(example).error
    assert (body.code, body.retryable, body.message) == (code.name, code.retryable, code.example)
    assert ("retry-after" in response["headers"]) >= code.waits


def test_headers_are_described(document: Json) -> None:
    for operation in operations(document).values():
        assert {"$ref": "#/components/parameters/RequestId"} in operation["parameters"]
        for response in operation["responses"].values():
            described = (
                document["components"]["responses"][response["$ref"].split("/")[-1]] if "$ref" in response else response
            )
            assert "x-request-id" in described["headers"]
    for name in ("rerank", "check", "embeddings"):
        assert set(PHASE_HEADERS) <= set(operations(document)[name]["responses"]["200"]["headers"])
    for name in ("answer", "search", "rerank", "check", "embeddings"):
        names = {parameter.get("name") for parameter in operations(document)[name]["parameters"]}
        assert "x-request-timeout-seconds" in names
    assert "retry-after" in document["components"]["responses"]["Error429"]["headers"]
    assert "allow" in document["components"]["responses"]["Error405"]["headers"]


def test_references_lead_somewhere(document: Json) -> None:
    def walk(node: Any) -> None:
        if isinstance(node, dict):
            reference = node.get("$ref")
            if isinstance(reference, str):
                place: Any = document
                for part in reference.removeprefix("#/").split("/"):
                    place = place[part]
            for value in node.values():
                walk(value)
        elif isinstance(node, list):
            for value in node:
                walk(value)

    walk(document)


@pytest.mark.parametrize(
    ("name", "request_kind", "response_kind"),
    [
        ("answer", AnswerRequest, Answer),
        ("search", SearchRequest, SearchResponse),
        ("rerank", RerankRequest, RerankResponse),
        ("check", CheckRequest, CheckResponse),
        ("embeddings", EmbeddingsRequest, EmbeddingsResponse),
        ("health", None, Health),
        ("readiness", None, Readiness),
    ],
)
def test_examples_are_what_they_say(document: Json, name: str, request_kind: Any, response_kind: Any) -> None:
    operation = operations(document)[name]
    given = examples_of(operation["requestBody"]["content"]) if request_kind else []
    assert len(given) >= (request_kind is not None)
    for value in given:
        TypeAdapter(request_kind).validate_python(value)
    answers = examples_of(operation["responses"]["200"]["content"])
    assert answers
    for value in answers:
        assert TypeAdapter(response_kind).validate_python(value).model_dump(mode="json", by_alias=True) == value


def test_a_stream_is_described_event_by_event(document: Json) -> None:
    content = operations(document)["answer"]["responses"]["200"]["content"]
    assert set(content) == {"application/json", "text/event-stream"}
    described = {
        event["properties"]["event"]["const"]: event["properties"]["data"]["contentSchema"]["$ref"].split("/")[-1]
        for event in content["text/event-stream"]["itemSchema"]["oneOf"]
    }
    assert described == {**{name: kind.__name__ for name, kind in KINDS.items()}, "error": "ErrorOut"}
    [example] = content["text/event-stream"]["examples"].values()
    assert {event.event for event in read(example["value"].encode())} <= set(described)
    assert "cannot be resumed: `Last-Event-ID` is" in operations(document)["answer"]["description"]


def test_the_answers_of_the_examples_are_grounded() -> None:
    for answer in (examples.answered(), examples.declined(), examples.searched()):
        grounding.validate(answer.text, answer.grounding)
        assert parse(answer.marked_text, len(answer.passages)).text == answer.text
    answer = examples.answered()
    assert answer.verified
    [claim] = answer.claims
    assert answer.text.encode()[slice(*claim.span.utf8)].decode() == claim.text
    assert claim.text in examples.PASSAGE.text
    assert examples.declined().decline is not None


def test_every_outcome_and_status_has_an_example(document: Json) -> None:
    shown = {value["outcome"] for value in examples_of(operations(document)["answer"]["responses"]["200"]["content"])}
    assert shown == {"answered", "declined", "search"}
    assert set(document["components"]["responses"]) == {f"Error{code.status}" for code in TABLE.values()}


def test_the_answer_has_every_field(document: Json) -> None:
    assert set(document["components"]["schemas"]["Answer"]["properties"]) == set(Answer.model_fields)
    assert set(document["components"]["schemas"]["ErrorBody"]["required"]) == {
        "code",
        "message",
        "request_id",
        "retryable",
    }
