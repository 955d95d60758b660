"""Generated calls over all routes, in process, above a fake backend: no fault of ours, nothing undocumented.

Valid and invalid data, always the same ones: the run is derandomised and keeps no database.
"""

from __future__ import annotations

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import CheckFunction, not_a_server_error
from schemathesis.specs.openapi.checks import (
    allow_header_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from serving.answer.errors import DeadlineExceededError, OverloadedError, UnavailableError

from .fakes import FakeBackend
from .test_http import api_over

CHECKS = [
    *(not_a_server_error, status_code_conformance, content_type_conformance, response_headers_conformance),
    *(response_schema_conformance, unsupported_method, allow_header_conformance),
]


SCHEMA = schemathesis.openapi.from_asgi("/openapi.json", api_over(FakeBackend()))
ALIASES = {"rerank_v2", "rerank_bare"}  # the same function at other paths
OPERATIONS = {
    name: operation
    for result in SCHEMA.get_all_operations()
    if (name := (operation := result.ok()).definition.raw["operationId"]) not in ALIASES
}
# A call without a body cannot be wrong in a generated way.
POSTS = ["answer", "search", "rerank", "check", "embeddings"]

FAULTS = {
    "full": OverloadedError("the budget is spent", retry_after_s=0.3),
    "down": UnavailableError("the synthesizer is not available", retry_after_s=2.0),
    "late": DeadlineExceededError("the deadline passed"),
    "broken": RuntimeError("hunter2"),
}


def call_all(
    operation: str, mode: GenerationMode, backend: FakeBackend, *, examples: int, checks: list[CheckFunction]
) -> set[int]:
    """Calls one operation with generated data. Returns the statuses that came back."""
    app, seen = api_over(backend), set[int]()

    @settings(
        max_examples=examples,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=OPERATIONS[operation].as_strategy(generation_mode=mode))
    def call(case: schemathesis.Case) -> None:
        response = case.call(app=app)
        case.validate_response(response, checks=checks)
        seen.add(response.status_code)

    call()
    return seen


@pytest.mark.parametrize("operation", OPERATIONS)
def test_valid_calls_succeed_as_documented(operation: str) -> None:
    assert 200 in call_all(operation, GenerationMode.POSITIVE, FakeBackend(), examples=40, checks=CHECKS)


@pytest.mark.parametrize("operation", POSTS)
def test_invalid_calls_are_refused_as_documented(operation: str) -> None:
    seen = call_all(operation, GenerationMode.NEGATIVE, FakeBackend(), examples=60, checks=CHECKS)
    assert 422 in seen
    assert max(seen) < 500


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("operation", POSTS)
def test_faults_come_out_as_documented(operation: str, fault: str) -> None:
    error = FAULTS[fault]
    checks = [check for check in CHECKS if check is not not_a_server_error]
    seen = call_all(operation, GenerationMode.POSITIVE, FakeBackend(error=error), examples=10, checks=checks)
    assert getattr(error, "status", 500) in seen


def test_every_operation_is_called() -> None:
    assert set(POSTS) <= set(OPERATIONS)
    assert {operation.method.upper() for name, operation in OPERATIONS.items() if name not in POSTS} == {"GET"}
