"""The layers of an encoder on OpenVINO, which computes them on a CPU several times faster than torch in float32.

What stands before and behind the layers (embeddings, heads, calibration) stays torch's, in float32. The layers are
converted once and kept beside the other prepared weights.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import inspect
import sys
import threading
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from models.building import build_once
from models.errors import ModelUnusableError

PRECISIONS = {"float32": "f32", "bfloat16": "bf16", "float16": "f16"}
_RECIPE = 1  # part of a converted folder's name: raised when the same layers should give another folder


def moved(
    body: nn.Module, run: Callable[[], object], *, home: Path, name: str, version: str, dtype: str, threads: int
) -> OpenVinoBody:
    """What takes the place of ``body``, a module of the transformers library, and computes the same.

    ``run()`` computes a pass with it, of rows of different lengths: what it is called with then, it is called with
    always. ``name`` and ``version`` say whose layers these are; the converted ones are kept in ``home``. ``dtype`` is
    what they compute in, ``threads`` the width of an operation.

    Raises :class:`~models.errors.ModelUnusableError` where OpenVINO is not installed or cannot convert the layers, and
    :class:`~models.errors.DiskFullError`.
    """
    openvino = library()
    inputs, output = _seen(body, run)
    versions = f"{version} openvino {openvino.__version__} transformers {importlib.metadata.version('transformers')}"
    digest = hashlib.sha256(f"{versions} {' '.join(inputs)} recipe {_RECIPE}".encode()).hexdigest()[:12]

    def build(folder: Path, _lock: int) -> None:
        model = _converted(openvino, body, inputs, name)
        openvino.save_model(model, folder / "layers.xml", compress_to_fp16=False)

    folder = build_once(
        home.absolute() / "models" / f"{name}-openvino-{digest}",
        build,
        needed_bytes=lambda: sum(one.numel() * one.element_size() for one in body.parameters()),
        progress=lambda _message: None,
    )
    options = {
        "INFERENCE_PRECISION_HINT": PRECISIONS[dtype],
        "INFERENCE_NUM_THREADS": threads,
        "NUM_STREAMS": 1,
        "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0",
    }
    compiled = openvino.Core().compile_model(str(folder / "layers.xml"), "CPU", options)
    return OpenVinoBody(body, compiled, tuple(inputs), type(output), tuple(output.keys()))


class OpenVinoBody(nn.Module):
    """Is called as the module in whose place it stands, and gives what that gives, in float32."""

    def __init__(
        self, body: Any, compiled: Any, inputs: tuple[str, ...], output: type, fields: tuple[str, ...]
    ) -> None:
        super().__init__()
        self.config = body.config
        self._signature = inspect.signature(body.forward)
        self._words = body.get_input_embeddings()
        self._compiled, self._inputs = compiled, inputs
        self._output, self._fields = output, fields
        self._requests = threading.local()  # one computes one pass at a time

    def get_input_embeddings(self) -> Any:
        return self._words

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        given = _tensors(self._signature, args, kwargs)
        if not hasattr(self._requests, "own"):
            self._requests.own = self._compiled.create_infer_request()
        request = self._requests.own
        request.infer({name: given[name].numpy() for name in self._inputs})
        found = [torch.from_numpy(request.get_output_tensor(at).data.copy()) for at in range(len(self._fields))]
        return self._output(**dict(zip(self._fields, found, strict=True)))


def library() -> Any:
    """OpenVINO, without its telemetry, which would tell its maker that it is loaded."""
    # Where the package is said to be missing, OpenVINO uses a stub.
    sys.modules.setdefault("openvino_telemetry", None)  # type: ignore[arg-type]  # None is how Python says: missing
    try:
        import openvino  # noqa: PLC0415 - an extra
    except ImportError:
        raise ModelUnusableError(
            "An encoder's backend is openvino, which is not installed: run `pip install 'openindex-answer[cpu]'`, "
            "or set backend to torch."
        ) from None
    return openvino


class _Layers(nn.Module):
    """The body as a converter takes it: tensors in a fixed order in, a tuple out."""

    def __init__(self, body: nn.Module, inputs: tuple[str, ...]) -> None:
        super().__init__()
        self.body, self._inputs = body, inputs

    def forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        found: tuple[torch.Tensor, ...] = self.body(**dict(zip(self._inputs, tensors, strict=True))).to_tuple()
        return found


def _converted(openvino: Any, body: nn.Module, inputs: Mapping[str, torch.Tensor], name: str) -> Any:
    try:
        with torch.no_grad(), warnings.catch_warnings(action="ignore"):  # of what it takes for constant, and is
            model = openvino.convert_model(_Layers(body, tuple(inputs)).eval(), example_input=tuple(inputs.values()))
    except Exception as error:  # whatever its converter raises, and it raises much
        raise ModelUnusableError(f"OpenVINO does not convert {name}: set its backend to torch.") from error
    for place, (called, tensor) in zip(model.inputs, inputs.items(), strict=True):
        shape = [-1, -1, *tensor.shape[2:]]  # any rows, any length
        place.get_tensor().set_names({called})
        place.get_node().set_partial_shape(openvino.PartialShape(shape))
        place.get_node().set_element_type(openvino.Type(tensor.numpy().dtype))
    model.validate_nodes_and_infer_types()
    return model


def _seen(body: nn.Module, run: Callable[[], object]) -> tuple[dict[str, torch.Tensor], Any]:
    """The inputs that ``body`` is called with in ``run``, and what it gives."""
    seen: list[tuple[dict[str, torch.Tensor], Any]] = []
    signature = inspect.signature(body.forward)

    def note(_body: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
        seen.append((_tensors(signature, args, kwargs), output))

    hook = body.register_forward_hook(note, with_kwargs=True)
    try:
        run()
    finally:
        hook.remove()
    return {name: one.clone() for name, one in seen[0][0].items()}, seen[0][1]


def _tensors(signature: inspect.Signature, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    """The arguments that are tensors, by name."""
    bound = signature.bind(*args, **kwargs).arguments
    flat = {**{name: one for name, one in bound.items() if name != "kwargs"}, **bound.get("kwargs", {})}
    return {name: one for name, one in flat.items() if isinstance(one, torch.Tensor)}
