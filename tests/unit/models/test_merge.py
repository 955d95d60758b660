import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from models.catalog import Catalog
from models.errors import ModelUnusableError
from models.merge import merge

PREFIX = "base_model.model.layer.0.query"


@pytest.fixture
def base(tmp_path: Path) -> Path:
    folder = tmp_path / "base"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    weights = {"layer.0.query.weight": torch.ones(3, 5), "layer.0.key.weight": torch.ones(3, 5, dtype=torch.bfloat16)}
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    return folder


def adapter(folder: Path, *, prefix: str = PREFIX, width: int = 5, **settings: object) -> Path:
    folder.mkdir()
    (folder / "adapter_config.json").write_text(json.dumps({"r": 2, "lora_alpha": 8, **settings}))
    weights = {
        f"{prefix}.lora_A.weight": torch.full((2, width), 0.5),
        f"{prefix}.lora_B.weight": torch.full((3, 2), 0.25),
    }
    save_file(weights, folder / "adapter_model.safetensors")
    return folder


def test_the_adapter_is_in_the_weights_and_the_rest_stays(base: Path, tmp_path: Path) -> None:
    told: list[str] = []
    catalog = Catalog(tmp_path / "home")
    folder = catalog.merged(base, adapter(tmp_path / "citation"), progress=told.append)
    weights = load_file(folder / "model.safetensors")
    assert weights["layer.0.query.weight"].tolist() == torch.full((3, 5), 1 + 8 / 2 * 2 * 0.25 * 0.5).tolist()
    assert weights["layer.0.key.weight"].dtype == torch.bfloat16
    assert (folder / "config.json").read_text() == "{}"
    assert len(told) == 1
    assert catalog.merged(base, tmp_path / "citation", progress=told.append) == folder
    assert len(told) == 1


def test_a_rank_stabilised_adapter_is_scaled_by_the_root(base: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    merge(base, adapter(tmp_path / "a", use_rslora=True), tmp_path / "out")
    weight = load_file(tmp_path / "out" / "model.safetensors")["layer.0.query.weight"]
    assert weight[0, 0].item() == pytest.approx(1 + 8 / 2**0.5 * 2 * 0.25 * 0.5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"prefix": "base_model.model.layer.9.query"}, "was not trained on"),
        ({"width": 4}, "another shape"),
        ({"use_dora": True}, "use_dora"),
        ({"prefix": "layer.0.query"}, "no LoRA factor"),
    ],
)
def test_another_models_adapter_is_refused(
    base: Path, tmp_path: Path, options: dict[str, object], message: str
) -> None:
    with pytest.raises(ModelUnusableError, match=message):
        Catalog(tmp_path / "home").merged(base, adapter(tmp_path / "a", **options))  # type: ignore[arg-type]
    assert not [path for path in (tmp_path / "home" / "models").iterdir() if not path.name.endswith(".lock")]
