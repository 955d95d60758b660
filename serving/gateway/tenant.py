"""Whose share of a budget a call takes."""

from __future__ import annotations

import hashlib

from starlette.requests import Request

HEADER = "x-tenant"
_LONGEST = 128


def tenant_of(request: Request) -> str:
    """The key that a call is limited by: the header ``x-tenant``, which whoever authenticates callers sets, else a hash
    of the bearer token it comes with, else the empty string, which all other calls share.
    """
    named = request.headers.get(HEADER, "").strip()
    if named:
        return named[:_LONGEST]
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and token.strip():
        return hashlib.sha256(token.strip().encode("utf-8", "surrogateescape")).hexdigest()[:16]
    return ""
