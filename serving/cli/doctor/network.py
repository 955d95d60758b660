"""Ports here, and a server that runs."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any

from serving.cli.client import ServerError
from serving.cli.doctor.findings import Finding, Subject, ok, problem, warning
from serving.cli.doctor.machine import Machine, Reply

API_TITLE = "OpenIndex Answer"
API_VERSION = "1"
RAY_PORTS = {6379: "ray start --head --port=6380", 8265: "ray start --head --dashboard-port=8266"}
"""What ``ray start`` takes, and how to give it another. ``answer up`` takes whatever is free."""


def ports(machine: Machine, subject: Subject) -> Iterator[Finding]:
    host, port = str(subject.http.get("host", "127.0.0.1")), int(subject.http.get("port", 8000))
    refusal = machine.refusal(host, port)
    if not refusal:
        yield ok("port.http", f"{host}:{port} is free")
    elif refusal != "taken":
        fix = f"answer up{subject.with_config} --host 127.0.0.1"
        yield problem("port.http", f"cannot listen on {host}:{port}: {refusal}", fix)
    elif _is_ours(machine, host, port):
        yield ok("port.http", f"an answer server runs at {host}:{port}")
    else:
        fix = (
            f"stop what listens on it (ss -ltnp 'sport = :{port}'), or answer up{subject.with_config} --port {port + 1}"
        )
        yield problem("port.http", f"port {port} is taken", fix)
    taken = [port for port in RAY_PORTS if machine.refusal("127.0.0.1", port) == "taken"]
    if taken:
        said = f"port {' and '.join(map(str, taken))} is taken: `answer up` does not mind, `ray start` does"
        yield warning("port.ray", said, RAY_PORTS[taken[0]])
    else:
        yield ok("port.ray", f"{', '.join(map(str, RAY_PORTS))} are free")


def _is_ours(machine: Machine, host: str, port: int) -> bool:
    local = "127.0.0.1" if host in ("0.0.0.0", "::") else host  # noqa: S104
    try:
        found = machine.call(f"http://{f'[{local}]' if ':' in local else local}:{port}", "/openapi.json", timeout_s=1.0)
    except ServerError:
        return False
    return bool(_field(found, "info", "title") == API_TITLE)


def server(machine: Machine, subject: Subject) -> Iterator[Finding]:
    """A running server: alive, of this version, every model ready, and a search that comes back."""
    url = subject.url
    if url is None:
        return
    try:
        alive = machine.call(url, "/healthz", timeout_s=5.0)
    except ServerError as error:
        yield problem("server.health", str(error), "answer up, or name another with --url")
        return
    if alive.status != 200:
        yield problem("server.health", f"/healthz says {alive.status}", "answer up --verbose shows what Ray logs")
        return
    yield ok("server.health", f"{url} is alive")
    yield from _version(machine, url)
    yield from _readiness(machine, url)
    yield from _search(machine, url)


def _version(machine: Machine, url: str) -> Iterator[Finding]:
    try:
        found = machine.call(url, "/openapi.json", timeout_s=5.0)
    except ServerError as error:
        yield problem("server.version", str(error), f"curl -s {shlex.quote(url)}/openapi.json")
        return
    title, version = _field(found, "info", "title"), _field(found, "info", "version")
    if title != API_TITLE:
        yield problem("server.version", f"what answers at {url} is no answer engine", "name another with --url")
    elif version != API_VERSION:
        message = f"it speaks version {version} of the API, and this command version {API_VERSION}"
        yield warning("server.version", message, "update the older of the two")
    else:
        yield ok("server.version", f"version {version} of the API")


def _readiness(machine: Machine, url: str) -> Iterator[Finding]:
    try:
        found = machine.call(url, "/readyz", timeout_s=10.0)
    except ServerError as error:
        yield problem("server.ready", str(error), "answer up --verbose shows what Ray and vLLM log")
        return
    models = _field(found, "models")
    if not isinstance(models, dict) or not models:
        yield problem("server.ready", f"/readyz says {found.status}: {_reason(found)}", "answer up --verbose")
        return
    for name, is_ready in sorted(models.items()):
        if is_ready:
            yield ok(f"server.ready.{name}", "ready")
        else:
            message = f"the {name} has not answered a warm-up yet"
            yield problem(f"server.ready.{name}", message, "wait a minute; then answer up --verbose shows what it logs")


def _search(machine: Machine, url: str) -> Iterator[Finding]:
    try:
        found = machine.call(url, "/v1/search", {"query": "the", "limit": 1}, timeout_s=10.0)
    except ServerError as error:
        yield problem("server.search", str(error), "answer up --verbose shows what Ray logs")
        return
    passages = _field(found, "passages")
    if found.status != 200 or not isinstance(passages, list):
        yield problem("server.search", f"a search says {found.status}: {_reason(found)}", "answer index --installed")
    else:
        yield ok("server.search", f"a search comes back{'' if passages else ', with nothing found'}")


def _field(reply: Reply, *names: str) -> Any:
    value = reply.body
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _reason(reply: Reply) -> str:
    return str(_field(reply, "error", "message") or "no reason given")
