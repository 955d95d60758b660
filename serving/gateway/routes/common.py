"""What routes have in common: strict bodies, and the header that names a deadline.

A file here is a subject. Each has ``add(api, backend, limits)``, which ``create_api`` calls.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import Header
from pydantic import BaseModel, ConfigDict

from serving.gateway.backend import MAX_TIMEOUT_S
from serving.gateway.openapi import TIMEOUT_DESCRIPTION


class Body(BaseModel):
    """Base of all request bodies: unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")


Timeout = Annotated[
    float | None,
    Header(alias="x-request-timeout-seconds", gt=0, le=MAX_TIMEOUT_S, description=TIMEOUT_DESCRIPTION, examples=[20]),
]
"""The deadline in the header ``x-request-timeout-seconds``."""
