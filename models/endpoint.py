"""What is known of a model that is served elsewhere, and what its errors mean here."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import openai
from pydantic import SecretStr

from models.errors import EndpointError, EndpointKeyError, GrammarError, InputTooLongError, ModelNotFoundError
from serving.answer.errors import AnswerError, OverloadedError, UnavailableError
from serving.answer.seams import Generation

SETTINGS = "models.synthesizer.openai"
ConstraintKind = Literal["vllm", "json_schema", "none"]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An OpenAI-compatible endpoint.

    ``constraint`` is how it takes what a reply must match: ``vllm`` in vLLM's own field (grammars and schemas),
    ``json_schema`` as a response format (schemas), ``none`` not at all. ``length_field`` is its name for the most
    tokens of a reply. ``attempts`` are made until the first token, with ``backoff_s`` seconds after the first one and
    twice as many after each other.
    """

    base_url: str
    model: str
    key: SecretStr | None = None
    constraint: ConstraintKind = "none"
    length_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    attempts: int = 4
    backoff_s: float = 0.5

    @property
    def host(self) -> str:
        """Its address without what may be secret in it."""
        return urlsplit(self.base_url).hostname or self.base_url


def read_key(variable: str | None, file: Path | None) -> SecretStr | None:
    """The key in an environment variable or in a file; None when neither is named.

    Raises :class:`~models.errors.EndpointKeyError` when what is named holds none.
    """
    if variable is not None:
        key = os.environ.get(variable, "").strip()
        if not key:
            raise EndpointKeyError(
                f"{SETTINGS}.key_env names {variable}, which is not set: export it, or name another."
            )
        return SecretStr(key)
    if file is None:
        return None
    try:
        key = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise EndpointKeyError(f"{SETTINGS}.key_file cannot be read: name a file that holds the key alone.") from error
    if not key:
        raise EndpointKeyError(f"{SETTINGS}.key_file is empty: write the key into it.")
    return SecretStr(key)


def constrained(request: Generation, kind: ConstraintKind, schema: Any) -> dict[str, Any]:
    """The arguments of a call that hold the reply to the request's grammar or schema, as far as ``kind`` can.

    ``schema`` is the request's, parsed. What cannot be sent is no loss of truth: every claim is verified all the same.
    """
    if kind == "vllm" and request.grammar is not None:
        return {"extra_body": {"structured_outputs": {"regex": request.grammar}}}
    if kind == "vllm" and schema is not None:
        return {"extra_body": {"structured_outputs": {"json": schema}}}
    if kind == "json_schema" and schema is not None:
        described = {"name": "reply", "schema": schema, "strict": True}
        return {"response_format": {"type": "json_schema", "json_schema": described}}
    return {}


def translated(error: openai.APIError | UnavailableError, endpoint: Endpoint) -> AnswerError:
    """The incident that an error of the endpoint means. Of its own message nothing is told: it may quote the prompt."""
    if isinstance(error, UnavailableError):
        return error
    if isinstance(error, openai.APIConnectionError):
        return UnavailableError(f"The endpoint {endpoint.host} cannot be reached: see {SETTINGS}.base_url.")
    if not isinstance(error, openai.APIStatusError):
        return UnavailableError(f"The endpoint {endpoint.host} broke its reply off.")
    if error.status_code >= 500 or error.status_code == 408:
        return UnavailableError(f"The endpoint {endpoint.host} failed ({error.status_code}).")
    return _refused(error, endpoint)


def _refused(error: openai.APIStatusError, endpoint: Endpoint) -> AnswerError:
    host, status = endpoint.host, error.status_code
    if status in (401, 403):
        return EndpointKeyError(
            f"The endpoint {host} refuses the key ({status}): set {SETTINGS}.key_env or key_file to one that it knows."
        )
    if status == 404:
        return ModelNotFoundError(
            f"The endpoint {host} has no model {endpoint.model!r}: see {SETTINGS}.model and base_url."
        )
    if status == 429:
        return OverloadedError(f"The endpoint {host} takes no more calls now.", retry_after_s=asked_wait(error))
    said = f"{error.code or ''} {error.message}".casefold()
    if status == 413 or any(words in said for words in _TOO_LONG):
        return InputTooLongError(
            f"Prompt and reply do not fit the window of {endpoint.model!r}: lower answer.window_tokens, so that fewer "
            "passages are given."
        )
    if any(word in said for word in _CONSTRAINTS):
        return GrammarError(f"The endpoint {host} does not take the constraint: set {SETTINGS}.constraint to none.")
    return EndpointError(f"The endpoint {host} refuses the request ({status}): see {SETTINGS} for what it is sent.")


_TOO_LONG = ("context length", "context_length", "context window", "maximum model length")
_CONSTRAINTS = ("response_format", "structured", "grammar", "json_schema", "regex")


def asked_wait(error: openai.APIStatusError) -> float | None:
    """The seconds that the endpoint asks to be left alone, None when it does not say."""
    headers = error.response.headers
    for name, unit in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        try:
            seconds = float(headers[name]) * unit
        except (KeyError, ValueError):
            continue
        if 0.0 <= seconds < float("inf"):
            return seconds
    return None
