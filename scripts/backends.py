"""Ways of computing the scores of a pair encoder on a CPU, each made ready to be asked: torch's and its peers'.

The peers are no dependencies of the product: they are installed into a folder of their own, and what the registry lacks
is skipped with a note. All of them compute what the encoder computes: the same inputs, a score for each row.
"""

from __future__ import annotations

import copy
import importlib
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from models.encoder import PairEncoder

Inputs = Mapping[str, torch.Tensor]
Ask = Callable[[Inputs], NDArray[np.float32]]
Maker = Callable[[], Ask]

PEERS = {
    "onnxruntime": ("flatbuffers",),
    "onnx": ("ml_dtypes",),
    "openvino": (),
    "nncf": ("pydot",),
}
"""The packages of each peer that the product's environment does not hold."""


def install(folder: Path, say: Callable[[str], None]) -> set[str]:
    """Puts the peers into ``folder``, where they are not yet, and on the path; the names of those that load."""
    sys.modules.setdefault("openvino_telemetry", None)  # type: ignore[arg-type]  # nobody is told that it is loaded
    sys.path.append(str(folder))  # behind the environment, whose torch and numpy are to be used
    found = set()
    for name, beside in PEERS.items():
        if not (folder / name).is_dir():
            say(f"installing {name} into {folder}")
            command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder)]
            done = subprocess.run([*command, name, *beside], capture_output=True, text=True, check=False)
            if done.returncode:
                say(f"skipped {name}: {(done.stderr.strip().splitlines() or ['pip failed'])[-1]}")
                continue
            importlib.invalidate_caches()
        try:
            importlib.import_module(name)
            found.add(name)
        except ImportError as error:
            say(f"skipped {name}: {error}")
    return found


class Scoring(nn.Module):
    """A copy of an encoder's model that takes its inputs in a fixed order, and gives the encoder's scores."""

    def __init__(self, encoder: PairEncoder, names: Sequence[str]) -> None:
        super().__init__()
        self.model = copy.deepcopy(encoder._model)
        self._names = tuple(names)
        self._positive = getattr(encoder, "_positive", None)

    @property
    def body(self) -> nn.Module:
        """The layers without the heads, which compute in float32 whatever these do."""
        found: nn.Module = self.model.encoder if self._positive is None else self.model.base_model
        return found

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        given = self.model(**dict(zip(self._names, inputs, strict=True)))
        if self._positive is None:
            return given.float()
        logits = given.logits.float()
        return torch.sigmoid(logits[:, 0]) if logits.shape[1] == 1 else logits.softmax(-1)[:, self._positive]


def asked(model: Any, names: Sequence[str], *, autocast: bool = False) -> Ask:
    def ask(inputs: Inputs) -> NDArray[np.float32]:
        with torch.inference_mode(), torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
            scores: NDArray[np.float32] = model(*(inputs[name] for name in names)).numpy()
        return scores

    return ask


class Makers:
    """Every backend by its name, over one encoder that computes in float32. ``sample`` is a pass to trace with."""

    def __init__(self, encoder: PairEncoder, sample: Inputs, *, threads: int, folder: Path) -> None:
        self._encoder, self._sample = encoder, sample
        self._names = tuple(sample)
        self._threads = threads
        self._folder = folder

    def all(self, peers: set[str]) -> Iterator[tuple[str, Maker]]:
        yield "torch float32, eager attention", lambda: asked(self._torch("eager"), self._names)
        yield "torch float32, sdpa", lambda: asked(self._torch("sdpa"), self._names)
        for attention in ("eager", "sdpa"):
            yield f"torch bfloat16, autocast, {attention}", lambda a=attention: self._autocast(a)
        yield "torch bfloat16, weights too, sdpa", lambda: asked(self._halved(), self._names)
        yield "torch int8, sdpa", lambda: asked(self._int8(), self._names)
        yield "torch.compile float32", lambda: self._compiled(self._torch("sdpa"))
        yield "torch.compile bfloat16", lambda: self._compiled(self._halved())
        if {"onnxruntime", "onnx"} <= peers:
            yield "ONNX Runtime float32", lambda: self._onnx(self._exported())
            yield "ONNX Runtime int8", lambda: self._onnx(self._onnx_int8())
        if {"openvino", "onnx"} <= peers:
            yield "OpenVINO float32", lambda: self._openvino("f32")
            yield "OpenVINO bfloat16", lambda: self._openvino("bf16")
        if {"openvino", "onnx", "nncf"} <= peers:
            yield "OpenVINO int8 weights, float32", lambda: self._openvino("f32", int8=True)
            yield "OpenVINO int8 weights, bfloat16", lambda: self._openvino("bf16", int8=True)
            yield "OpenVINO int8, dynamic", lambda: self._openvino("f32", int8=True, group=32)

    def _torch(self, attention: str) -> Scoring:
        scoring = Scoring(self._encoder, self._names).eval()
        scoring.body.set_attn_implementation(attention)  # type: ignore[operator]
        return scoring

    def _autocast(self, attention: str) -> Ask:
        return asked(self._torch(attention), self._names, autocast=True)

    def _halved(self) -> Scoring:
        scoring = self._torch("sdpa")
        scoring.body.to(torch.bfloat16)
        if hasattr(scoring.model, "marks"):
            scoring.model.marks.to(torch.bfloat16)
        return scoring

    def _int8(self) -> Scoring:
        from torch.ao.quantization import per_channel_dynamic_qconfig, quantize_dynamic

        scoring = self._torch("sdpa")
        with warnings.catch_warnings(action="ignore"):  # that this is to move to another package
            quantize_dynamic(scoring.body, {nn.Linear: per_channel_dynamic_qconfig}, inplace=True)
        return scoring

    def _compiled(self, scoring: Scoring) -> Ask:
        return asked(torch.compile(scoring, dynamic=True), self._names)

    def _exported(self) -> Path:
        target = self._folder / "float32.onnx"
        if not target.exists():
            axes = {name: {0: "rows", 1: "length"} if one.dim() == 2 else {0: "rows"} for name, one in self._given()}
            with warnings.catch_warnings(action="ignore"):  # that the older exporter is the older one
                torch.onnx.export(
                    self._torch("eager"),
                    tuple(one for _, one in self._given()),
                    str(target),
                    input_names=list(self._names),
                    output_names=["scores"],
                    dynamic_axes=axes,
                    opset_version=18,
                    dynamo=False,
                )
        return target

    def _given(self) -> list[tuple[str, torch.Tensor]]:
        return [(name, self._sample[name]) for name in self._names]

    def _onnx_int8(self) -> Path:
        from onnxruntime.quantization import QuantType, quantize_dynamic

        target = self._folder / "int8.onnx"
        quantize_dynamic(
            self._exported(),
            target,
            per_channel=True,
            weight_type=QuantType.QInt8,
            op_types_to_quantize=["MatMul"],
            extra_options={"MatMulConstBOnly": True},
        )
        return target

    def _onnx(self, path: Path) -> Ask:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = self._threads, 1
        options.add_session_config_entry("session.force_spinning_stop", "1")  # others are measured beside it
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        read = [one.name for one in session.get_inputs()]

        def ask(inputs: Inputs) -> NDArray[np.float32]:
            scores: NDArray[np.float32] = session.run(None, {name: inputs[name].numpy() for name in read})[0]
            return scores

        return ask

    def _openvino(self, precision: str, *, int8: bool = False, group: int = 0) -> Ask:
        import openvino

        model = openvino.convert_model(self._exported())
        if int8:
            import nncf

            model = nncf.compress_weights(model, mode=nncf.CompressWeightsMode.INT8_SYM)
        how = {
            "INFERENCE_PRECISION_HINT": precision,
            "INFERENCE_NUM_THREADS": self._threads,
            "NUM_STREAMS": 1,
            "DYNAMIC_QUANTIZATION_GROUP_SIZE": str(group),
        }
        compiled = openvino.Core().compile_model(model, "CPU", how)
        request = compiled.create_infer_request()
        read = [one.get_any_name() for one in compiled.inputs]

        def ask(inputs: Inputs) -> NDArray[np.float32]:
            request.infer({name: inputs[name].numpy() for name in read})
            scores: NDArray[np.float32] = request.get_output_tensor(0).data.copy()
            return scores

        return ask
