"""What an import pulls in. Each is looked at in a process of its own, where nothing was imported before."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import serving

SERVING = Path(serving.__file__).parent
HEAVY = {"torch", "ray", "fastapi", "vllm", "faiss", "tantivy", "transformers"}

ANSWER = ["serving.answer", *(f"serving.answer.{path.stem}" for path in sorted((SERVING / "answer").glob("[a-z]*.py")))]

EVALUATION = [f"serving.evaluation.{path.stem}" for path in sorted((SERVING / "evaluation").glob("[a-z]*.py"))]


def heavy_after(modules: list[str]) -> set[str]:
    """Which heavy libraries a fresh interpreter holds once it has imported ``modules``."""
    code = f"import sys, importlib\nfor m in {modules!r}: importlib.import_module(m)\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    imported = done.stdout.split()
    assert set(modules) <= set(imported)
    return HEAVY & set(imported)


def test_the_answer_package_needs_no_heavy_library() -> None:
    assert "serving.answer.engine" in ANSWER
    assert heavy_after(ANSWER) == set()


def test_scoring_needs_no_heavy_library() -> None:
    assert "serving.evaluation.alce" in EVALUATION
    assert heavy_after(EVALUATION) == set()


@pytest.mark.parametrize(
    "module",
    ["serving.settings", "serving.cli.main", "serving.cli.client", "serving.cli.console", "serving.cli.rendering"],
)
def test_settings_and_the_command_line_start_light(module: str) -> None:
    assert heavy_after([module]) == set()


def test_the_gateway_needs_only_its_framework() -> None:
    assert heavy_after(["serving.gateway.http", "serving.gateway.errors"]) == {"fastapi"}


def test_the_backlogs_database_is_loaded_by_what_uses_it() -> None:
    code = "import sys, serving.cli.main, serving.gateway.http\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "serving.gaps.records" in done.stdout.split()
    assert {"sqlalchemy", "alembic", "numpy"} & set(done.stdout.split()) == set()


def test_preparing_to_start_needs_neither_ray_nor_a_model_runtime() -> None:
    assert heavy_after(["serving.cli.up", "serving.cli.indexing"]) == set()


def test_a_heavy_library_is_noticed() -> None:
    assert heavy_after(["fastapi"]) == {"fastapi"}


def test_packages_hold_nothing_of_their_own() -> None:
    inits = sorted(SERVING.rglob("__init__.py"))
    assert len(inits) > 5
    assert [path for path in inits if path.read_text().strip()] == []
