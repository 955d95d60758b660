"""``GET /healthz`` and ``GET /readyz``, for probes."""

from __future__ import annotations

from fastapi import FastAPI, Response
from pydantic import BaseModel

from serving.gateway import examples
from serving.gateway.backend import Backend, Limits
from serving.gateway.openapi import GET_ERRORS, errors


class Health(BaseModel):
    status: str


class Readiness(BaseModel):
    """``models`` says of each whether it has answered a warm-up."""

    ready: bool
    models: dict[str, bool]


_HEALTHY = examples.ok(healthy=Health(status="ok"))
_READY = examples.ok(ready=Readiness(ready=True, models={"synthesizer": True, "verifier": True}))
_COLD = examples.ok(warming_up=Readiness(ready=False, models={"synthesizer": False, "verifier": True}))


def add(api: FastAPI, backend: Backend, _limits: Limits) -> None:
    @api.get(
        "/healthz",
        operation_id="health",
        tags=["health"],
        summary="Does the process serve?",
        responses={200: _HEALTHY, **errors(*GET_ERRORS)},
    )
    async def healthz() -> Health:
        """The process serves. It says nothing of the models: see `/readyz`."""
        return Health(status="ok")

    @api.get(
        "/readyz",
        operation_id="readiness",
        tags=["health"],
        summary="Can questions be asked?",
        response_description="Every model has answered a warm-up.",
        responses={
            200: _READY,
            503: {"model": Readiness, "description": "Some model has not answered a warm-up yet.", **_COLD},
            **errors(*GET_ERRORS),
        },
    )
    async def readyz(response: Response) -> Readiness:
        """Every model has answered a warm-up."""
        models = await backend.ready()
        ready = bool(models) and all(models.values())
        response.status_code = 200 if ready else 503
        return Readiness(ready=ready, models=models)
