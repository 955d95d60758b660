"""``GET /healthz`` and ``GET /readyz``, for probes."""

from __future__ import annotations

from fastapi import Response
from pydantic import BaseModel

from serving.gateway.backend import Backend, Limits
from serving.gateway.openapi import GET_ERRORS, DescribedApi, errors


class Health(BaseModel):
    status: str


class Readiness(BaseModel):
    """``models`` says of each whether it has answered a warm-up."""

    ready: bool
    models: dict[str, bool]


def add(api: DescribedApi, backend: Backend, _limits: Limits) -> None:
    api.show("health", responses={200: {"healthy": Health(status="ok")}})
    api.show(
        "readiness",
        responses={
            200: {"ready": Readiness(ready=True, models={"synthesizer": True, "verifier": True})},
            503: {"warming up": Readiness(ready=False, models={"synthesizer": False, "verifier": True})},
        },
    )

    @api.get(
        "/healthz",
        operation_id="health",
        tags=["health"],
        summary="Does the process serve?",
        responses=errors(*GET_ERRORS),
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
            503: {"model": Readiness, "description": "Some model has not answered a warm-up yet."},
            **errors(*GET_ERRORS),
        },
    )
    async def readyz(response: Response) -> Readiness:
        """Every model has answered a warm-up."""
        models = await backend.ready()
        ready = bool(models) and all(models.values())
        response.status_code = 200 if ready else 503
        return Readiness(ready=ready, models=models)
