"""Where the time of a model's call went: in response headers, in the access line, in metrics, by the same names."""

from __future__ import annotations

from typing import Any

from fastapi import Request, Response

from serving.answer.types import Phases
from serving.gateway.access import access_of

_SAID = {
    "x-tokenise-time": "Milliseconds of reading the texts as tokens.",
    "x-queue-time": "Milliseconds of waiting for the device.",
    "x-compute-time": "Milliseconds of the forward passes that held the call's rows.",
    "x-total-time": "Milliseconds from the call's arrival at the model to its result.",
    "x-compute-tokens": "Tokens of the call's rows.",
    "x-padded-tokens": "Token slots of the call's rows, padded to the longest row beside them.",
}

DESCRIBED: dict[str, Any] = {
    name: {"description": f"{said} Absent where no model ran.", "schema": {"type": "string"}}
    for name, said in _SAID.items()
}
"""The headers, for a route's description."""


def tell(phases: Phases, request: Request, response: Response) -> None:
    """Puts the phases on the response and into the request's line; nothing where no model ran."""
    if not phases.tokens:
        return
    seconds = {
        "tokenise": phases.tokenise_s,
        "queue": phases.queue_s,
        "compute": phases.compute_s,
        "total": phases.total_s,
    }
    access = access_of(request)
    for name, value in seconds.items():
        response.headers[f"x-{name}-time"] = f"{1000 * value:.1f}"
        if name != "total":
            access.stages_ms[name] = round(1000 * value, 1)
    tokens = {"compute_tokens": phases.tokens, "padded_tokens": phases.padded_tokens}
    for name, count in tokens.items():
        response.headers[f"x-{name.replace('_', '-')}"] = str(count)
    access.details |= tokens
