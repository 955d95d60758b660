"""Ours and Serve's lines in one place, each with the request's id, and none with what an error quotes.

Serve carries a request's id from handle to handle and writes it into every line that is logged for the request. What is
left to do: tell it the id that the gateway chose, and log where it logs.
"""

from __future__ import annotations

import dataclasses
import logging
from typing import Any

from ray.serve import context
from ray.serve.schema import LoggingConfig

from serving.logs import described
from serving.settings import LoggingSettings

SERVE = "ray.serve"
JOINED = ("serving", "models", "vllm")


def serve_logging(settings: LoggingSettings, *, calls: bool = True) -> LoggingConfig:
    """Serve's own logging, by our settings. ``calls`` writes a line for each call that a replica answers."""
    return LoggingConfig(encoding=settings.format.upper(), log_level=settings.level, enable_access_log=calls)


def join_serve_log() -> None:
    """What this process logs goes where Serve logs, and tracebacks do not quote. Call it in each replica."""
    for name in JOINED:
        logger = logging.getLogger(name)
        logger.parent = logging.getLogger(SERVE)  # handlers and level are Serve's, also after it changes them
        logger.setLevel(logging.NOTSET)  # forgets what was decided by the parent before
    factory = logging.getLogRecordFactory()
    if not isinstance(factory, _Discreet):
        logging.setLogRecordFactory(_Discreet(factory))


class _Discreet:
    """Makes log records whose traceback says types and places: the message of an error may quote a passage."""

    def __init__(self, make: Any) -> None:
        self._make = make

    def __call__(self, *arguments: Any, **keywords: Any) -> logging.LogRecord:
        record: logging.LogRecord = self._make(*arguments, **keywords)
        if record.exc_info and record.exc_info[1] is not None:
            record.exc_text = described(record.exc_info[1])  # what formatters write when it is there
        return record


def adopt(request_id: str) -> None:
    """Makes ``request_id`` the id of the request that this task handles, here and behind every handle it calls."""
    # Serve has no public way to set it; its own proxy and replicas do just this.
    now = context._get_serve_request_context()  # noqa: SLF001
    if now.request_id != request_id:
        context._serve_request_context.set(dataclasses.replace(now, request_id=request_id))  # noqa: SLF001
