import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from huggingface_hub.errors import LocalEntryNotFoundError
from safetensors.numpy import save_file

import models.catalog
import models.hub
from models.building import build_once
from models.catalog import Catalog, fingerprint
from models.errors import DiskFullError, HubUnreachableError, ModelNotFoundError, ModelUnusableError


def silent(_message: str) -> None:
    pass


def model_folder(folder: Path, value: float = 0.5) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps({"model_type": "bert"}))
    save_file({"weight": np.full((400, 400), value, dtype=np.float32)}, folder / "model.safetensors")
    return folder


def test_a_path_is_used_in_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = model_folder(tmp_path / "model")
    catalog = Catalog(tmp_path / "home")
    monkeypatch.chdir(tmp_path)
    assert catalog.locate(f"path:{folder}") == catalog.locate(str(folder)) == folder
    assert catalog.locate("path:model") == catalog.locate("model") == folder
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize("reference", ["nowhere", "path:/nowhere", "package:no-such-package-here", "package:", ""])
def test_a_reference_to_nothing(tmp_path: Path, reference: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises((ModelNotFoundError, ModelUnusableError)):
        Catalog(tmp_path).locate(reference)


def test_finding_is_locating_without_making_anything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, home = model_folder(tmp_path / "model"), tmp_path / "home"
    catalog = Catalog(home)
    assert catalog.find(f"path:{folder}") == catalog.find(str(folder)) == folder
    with pytest.raises(ModelNotFoundError):
        catalog.find("path:/nowhere")
    with pytest.raises(ModelNotFoundError):
        catalog.find("package:no-such-package-here")
    (folder / "config.json").unlink()
    with pytest.raises(ModelUnusableError, match=r"config\.json"):
        catalog.find(str(folder))
    monkeypatch.setattr(models.hub, "download", lambda *_, **__: pytest.fail("the hub was asked"))
    assert catalog.find("hub:some/model") is None
    (tmp_path / "model.gguf").write_bytes(b"GGUF")
    assert catalog.find(str(tmp_path / "model.gguf")) is None
    assert not home.exists()


def test_what_was_unpacked_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "model.gguf").write_bytes(b"GGUF")
    catalog = Catalog(tmp_path / "home")
    monkeypatch.setattr(models.catalog.GgufFile, "float32_bytes", lambda _self: 1)
    monkeypatch.setattr(models.catalog.GgufFile, "__init__", lambda _self, _path: None)
    monkeypatch.setattr(models.catalog, "_apart", lambda _module, arguments, _lock: model_folder(arguments[1]))
    located = catalog.locate(str(tmp_path / "model.gguf"))
    assert catalog.find(str(tmp_path / "model.gguf")) == located


def test_pickles_are_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "pytorch_model.bin").write_bytes(b"\x80\x04.")
    with pytest.raises(ModelUnusableError, match="convert them to safetensors"):
        Catalog(tmp_path).locate(str(tmp_path))


def test_weights_without_a_configuration_are_refused(tmp_path: Path) -> None:
    (model_folder(tmp_path) / "config.json").unlink()
    with pytest.raises(ModelUnusableError, match=r"config\.json"):
        Catalog(tmp_path).locate(str(tmp_path))


def test_a_package_without_weights_says_so(tmp_path: Path) -> None:
    with pytest.raises(ModelUnusableError, match="carries 0 models"):
        Catalog(tmp_path).locate("package:pytest")


def test_a_package_of_weights_is_found_without_importing_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = tmp_path / "site"
    folder = model_folder(site / "boxed_weights" / "model")
    (site / "boxed_weights" / "__init__.py").write_text("raise RuntimeError('imported')")
    information = site / "boxed_weights-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: boxed-weights\nVersion: 1.0\n")
    names = ["__init__.py", "model/config.json", "model/model.safetensors"]
    (information / "RECORD").write_text("".join(f"boxed_weights/{name},,\n" for name in names))
    monkeypatch.syspath_prepend(str(site))
    assert Catalog(tmp_path).locate("package:boxed-weights") == folder


def test_what_is_no_gguf_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model.gguf").write_bytes(b"not a model")
    with pytest.raises(ModelUnusableError, match="fetch it again"):
        Catalog(tmp_path / "home").locate(str(tmp_path / "model.gguf"))
    assert not [path for path in (tmp_path / "home" / "models").iterdir() if not path.name.endswith(".lock")]


def test_the_hub_may_be_out_of_reach(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, object] = {}

    def offline(repository: str, **options: object) -> str:
        asked.update(options, repository=repository)
        raise LocalEntryNotFoundError("no network")

    monkeypatch.setattr(models.hub, "snapshot_download", offline)
    with pytest.raises(HubUnreachableError, match="path:FOLDER") as caught:
        Catalog(tmp_path).locate("hub:org/name@v1")
    assert caught.value.retryable
    assert (asked["repository"], asked["revision"]) == ("org/name", "v1")
    assert not any(name.endswith((".bin", ".pt", ".py")) for name in asked["allow_patterns"])  # type: ignore[attr-defined]


def test_a_fingerprint_names_the_weights_not_the_place(tmp_path: Path) -> None:
    first = fingerprint(model_folder(tmp_path / "a"))
    assert first == fingerprint(model_folder(tmp_path / "b"))
    assert first != fingerprint(model_folder(tmp_path / "c", value=0.25))
    assert len(first) == 12
    (tmp_path / "a" / "config.json").write_text("{}")
    assert first != fingerprint(tmp_path / "a")


def test_the_catalog_loads_no_heavy_library() -> None:
    heavy = "{'torch', 'transformers', 'vllm', 'sentence_transformers', 'gguf'}"
    code = f"import sys, models.catalog, models.tokens; print({heavy} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def fill(folder: Path, _lock: int) -> None:
    (folder / "weights").write_bytes(b"w" * 1000)


def test_a_build_that_fails_leaves_nothing_and_can_be_repeated(tmp_path: Path) -> None:
    def fail(folder: Path, lock: int) -> None:
        fill(folder, lock)
        raise RuntimeError("broken")

    target = tmp_path / "models" / "x"
    with pytest.raises(RuntimeError, match="broken"):
        build_once(target, fail, needed_bytes=lambda: 0, progress=silent)
    assert not target.exists()
    assert build_once(target, fill, needed_bytes=lambda: 0, progress=silent) == target
    assert sorted(path.name for path in target.parent.iterdir()) == [".x.lock", "x"]


def test_a_full_disk_is_seen_before_building(tmp_path: Path) -> None:
    with pytest.raises(DiskFullError, match=r"needs \d+ bytes .* free some space"):
        build_once(tmp_path / "x", fill, needed_bytes=lambda: 2**60, progress=silent)
    assert not (tmp_path / "x").exists()


def _build_slowly(target: Path, log: Path) -> None:
    def build(folder: Path, lock: int) -> None:
        with log.open("a") as file:
            file.write("built\n")
        time.sleep(0.5)
        fill(folder, lock)

    build_once(target, build, needed_bytes=lambda: 0, progress=silent)
    assert (target / "weights").stat().st_size == 1000


def test_of_several_processes_one_builds(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    log = tmp_path / "log"
    processes = [context.Process(target=_build_slowly, args=(tmp_path / "x", log)) for _ in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(30)
    assert [process.exitcode for process in processes] == [0] * 4
    assert log.read_text() == "built\n"


def _build_for_ever(target: Path, began: Path) -> None:
    def build(folder: Path, lock: int) -> None:
        fill(folder, lock)
        began.touch()
        time.sleep(600)

    build_once(target, build, needed_bytes=lambda: 0, progress=silent)


def test_what_a_killed_build_left_is_removed(tmp_path: Path) -> None:
    process = multiprocessing.get_context("fork").Process(
        target=_build_for_ever, args=(tmp_path / "models" / "old", tmp_path / "began")
    )
    process.start()
    while not (tmp_path / "began").exists():
        time.sleep(0.01)
    os.kill(process.pid or 0, signal.SIGKILL)
    process.join()
    assert (tmp_path / "models" / ".old.building").exists()
    build_once(tmp_path / "models" / "new", fill, needed_bytes=lambda: 0, progress=silent)
    assert not (tmp_path / "models" / ".old.building").exists()
    assert (tmp_path / "models" / "new" / "weights").exists()


def test_who_waits_is_told(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    process = context.Process(target=_build_slowly, args=(tmp_path / "x", tmp_path / "log"))
    process.start()
    while not (tmp_path / "log").exists():
        time.sleep(0.01)
    told: list[str] = []
    build_once(tmp_path / "x", fill, needed_bytes=lambda: 0, progress=told.append)
    process.join()
    assert told == ["Waiting for another process that is preparing x"]
