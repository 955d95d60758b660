"""The keys of a Serve file outside ``args``. Ray ignores those it does not know; here they are refused.

Keys at the top that begin with ``x-`` are free, for YAML anchors.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection
from typing import Any

# As Ray's schema (``ray.serve.schema``) has them; it takes seconds to import, and a test compares the two.
FILE = frozenset(
    "proxy_location http_options grpc_options controller_options logging_config tracing_config applications "
    "target_capacity".split()
)
HTTP_OPTIONS = frozenset(
    "host port root_path request_timeout_s keep_alive_timeout_s ssl_keyfile ssl_certfile ssl_keyfile_password "
    "ssl_ca_certs".split()
)
GRPC_OPTIONS = frozenset("port grpc_servicer_functions request_timeout_s enable_reflection".split())
APPLICATION = frozenset(
    "name route_prefix import_path runtime_env args logging_config autoscaling_policy external_scaler_enabled".split()
)

EXTENSION = "x-"
ELSEWHERE = {
    "deployments": "write it under args.deployments, by the deployment's name, where it is checked",
    "host": "write it under http_options, at the top of the file",
    "port": "write it under http_options, at the top of the file",
}
"""Keys of an application that Ray's schema has and that are said elsewhere."""


def serve_file_faults(document: dict[str, Any]) -> list[str]:
    """Names every key that Ray would ignore, with the one that was meant, if it is close to one."""
    known = {key: value for key, value in document.items() if not str(key).startswith(EXTENSION)}
    faults = _unknown("", known, FILE)
    for name, keys in (("http_options", HTTP_OPTIONS), ("grpc_options", GRPC_OPTIONS)):
        part = document.get(name)
        if part is None:
            continue
        if not isinstance(part, dict):
            faults.append(f"{name} must hold keys such as {', '.join(sorted(keys)[:3])}")
            continue
        faults += _unknown(f"{name}.", part, keys)
    for number, application in enumerate(document.get("applications") or ()):
        where = f"applications[{number}]."
        faults += [f"{where}{key}: {ELSEWHERE[key]}" for key in application if key in ELSEWHERE]
        faults += _unknown(
            where, {key: value for key, value in application.items() if key not in ELSEWHERE}, APPLICATION
        )
    return faults


def _unknown(where: str, part: dict[Any, Any], known: Collection[str]) -> list[str]:
    faults = []
    for key in part:
        if key in known:
            continue
        close = difflib.get_close_matches(str(key), sorted(known), n=1)
        advice = f"did you mean {close[0]}?" if close else f"known here: {', '.join(sorted(known))}"
        faults.append(f"{where}{key} is no key of a Serve file, and Ray would ignore it; {advice}")
    return faults
