"""vLLM's engine behind our own words: options and requests in, outputs and our errors out.

vLLM reads its environment while it is imported, so this module is imported after
:func:`models.vllm_options.prepare_environment`.
"""

from __future__ import annotations

import itertools
import json
import multiprocessing
import os
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager
from pathlib import Path
from typing import Any

from vllm import SamplingParams
from vllm.engine.arg_utils import AsyncEngineArgs
from vllm.exceptions import VLLMClientError
from vllm.lora.request import LoRARequest
from vllm.platforms import current_platform
from vllm.sampling_params import RequestOutputKind, StructuredOutputsParams
from vllm.usage.usage_lib import UsageContext
from vllm.v1.engine.async_llm import AsyncLLM
from vllm.v1.engine.exceptions import EngineDeadError, EngineGenerateError

from models.cpu import cpu_flags, resolve_dtype
from models.errors import GrammarError, ModelUnusableError
from models.leash import Leash
from models.vllm_options import VllmOptions
from serving.answer.errors import UnavailableError
from serving.answer.seams import Generation

_GIB = 2**30
_LORA_RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)  # what vLLM has kernels for
_SHUTDOWN_S = 5.0


class VllmEngine:
    """One engine. Built, used and closed on one event loop.

    Raises :class:`~models.errors.ModelUnusableError` when the model or its adapter does not load.
    """

    def __init__(self, options: VllmOptions) -> None:
        self._adapters = itertools.count(1)
        self._max_lora_rank = _lora_rank(options.adapter[1]) if options.adapter else 0
        before = {process.pid for process in multiprocessing.active_children()}
        try:
            # The context makes vLLM size its batches for a server.
            self._engine: Any = AsyncLLM.from_engine_args(
                AsyncEngineArgs(**_arguments(options)), usage_context=UsageContext.OPENAI_API_SERVER
            )
        except (OSError, ValueError, RuntimeError) as error:
            raise ModelUnusableError(f"vLLM cannot load {options.model}: {error}") from error
        started = {process.pid for process in multiprocessing.active_children()} - before
        self._leash = Leash([pid for pid in started if pid is not None])
        self.tokenizer: Any = self._engine.get_tokenizer()

    @property
    def dead(self) -> bool:
        return self._engine is None or bool(self._engine.errored)

    def adapter(self, name: str, folder: Path) -> LoRARequest:
        """The adapter in ``folder``, under a number of its own: vLLM keeps what it has read by that number.

        Raises :class:`~models.errors.ModelUnusableError` when this engine cannot run it beside its weights.
        """
        rank = _lora_rank(folder)
        if rank > self._max_lora_rank:
            raise ModelUnusableError(
                f"The engine was started for adapters of rank {self._max_lora_rank} at most, and {name} has {rank}: "
                "set models.synthesizer.adapter to it and start anew, or set models.synthesizer.merge_adapter."
            )
        return LoRARequest(lora_name=name, lora_int_id=next(self._adapters), lora_path=str(folder))

    async def load_adapter(self, adapter: LoRARequest) -> None:
        """Reads an adapter in beside those that are there. Raises :class:`~models.errors.ModelUnusableError`."""
        with self._refusing(adapter.lora_path):
            await self._engine.add_lora(adapter)

    async def forget_adapter(self, adapter: LoRARequest) -> None:
        """Gives up an adapter that no reply uses any more."""
        with self._refusing(adapter.lora_path):
            await self._engine.engine_core.remove_lora_async(adapter.lora_int_id)

    async def reload(self, model: Path) -> None:
        """Overwrites the weights in place with those in ``model``, of the same shapes. Nothing may be in flight.

        Raises :class:`~models.errors.ModelUnusableError`; what the engine's weights are is then unknown.
        """
        with self._refusing(str(model)):
            # All that was computed with the old weights is forgotten with them.
            await self._engine.pause_generation(mode="wait", clear_cache=True)
            try:
                await self._engine.collective_rpc("reload_weights", kwargs={"weights_path": str(model)})
            finally:
                await self._engine.resume_generation()

    @contextmanager
    def _refusing(self, folder: str) -> Iterator[None]:
        if self.dead:
            raise UnavailableError("The language model's engine is not running.")
        try:
            yield
        except EngineDeadError as error:
            raise UnavailableError("The language model's engine has died.") from error
        except Exception as error:  # vLLM passes on whatever failed over there
            raise ModelUnusableError(f"vLLM cannot load {folder} into the running engine: {error}") from error

    async def stream(
        self, prompt: list[int], request: Generation, request_id: str, adapter: LoRARequest | None = None
    ) -> AsyncGenerator[Any, None]:
        """The engine's outputs for a prompt of token ids, each with what is new. Closing or cancelling it aborts it.

        ``request_id`` names the request inside the engine and must be its only one of that name.
        """
        outputs = self._outputs(prompt, _sampling(request), request_id, adapter)
        try:
            async for output in outputs:
                yield output
        except (VLLMClientError, ValueError) as error:
            # The prompt was checked before: what is left for vLLM to refuse is the grammar. Its message would quote the
            # passages that the grammar holds.
            raise GrammarError("The engine refuses the request's grammar.") from error
        finally:
            await outputs.aclose()

    async def first_token(self, prompt: list[int], request_id: str, *, top: int) -> list[tuple[str, float]]:
        """The ``top`` likeliest tokens after a prompt of token ids, as text, with their log-probabilities.

        Cancelling it aborts the request. ``request_id`` as in :meth:`stream`.
        """
        sampling = SamplingParams(temperature=0.0, max_tokens=1, logprobs=top, output_kind=RequestOutputKind.FINAL_ONLY)
        async with aclosing(self._outputs(prompt, sampling, request_id, None)) as outputs:
            async for output in outputs:
                if output.finished and output.outputs[0].logprobs:
                    [first] = output.outputs[0].logprobs
                    return [(one.decoded_token or "", one.logprob) for one in first.values()]
        raise UnavailableError("The language model's engine gave up this request.")

    async def _outputs(
        self, prompt: list[int], sampling: SamplingParams, request_id: str, adapter: LoRARequest | None
    ) -> AsyncGenerator[Any, None]:
        if self.dead:
            raise UnavailableError("The language model's engine is not running.")
        outputs = self._engine.generate({"prompt_token_ids": prompt}, sampling, request_id, lora_request=adapter)
        finished = False
        try:
            async for output in outputs:
                finished = output.finished
                yield output
        except EngineDeadError as error:
            raise UnavailableError("The language model's engine has died.") from error
        except EngineGenerateError as error:
            raise UnavailableError("The language model failed on this request.") from error
        finally:
            await outputs.aclose()
            if not finished and not self.dead:
                await self._engine.abort(request_id)

    def close(self) -> None:
        if self._engine is not None:
            self._engine.shutdown(timeout=_SHUTDOWN_S)
            self._leash.release()
            self._engine = None  # else it shuts down once more while the interpreter is being taken apart


def _arguments(options: VllmOptions) -> dict[str, Any]:
    on_cpu = current_platform.is_cpu()
    arguments: dict[str, Any] = {
        "model": str(options.model),
        "dtype": resolve_dtype(options.dtype, flags=cpu_flags() if on_cpu else None),
        "max_model_len": options.max_model_len,
        "gpu_memory_utilization": options.gpu_memory_utilization,
        "max_num_seqs": options.max_num_seqs,
        "enforce_eager": options.enforce_eager,
        "enable_prefix_caching": options.enable_prefix_caching,
        "seed": options.seed,
        "tensor_parallel_size": options.tensor_parallel_size,
        "trust_remote_code": False,
        "enable_log_requests": False,
        # Between the members of an object a model may otherwise write blanks until its tokens are spent.
        "structured_outputs_config": {"backend": "xgrammar", "disable_any_whitespace": True},
    }
    if options.kv_cache_gib is not None:
        arguments["kv_cache_memory_bytes"] = int(options.kv_cache_gib * _GIB)
    if on_cpu and options.tensor_parallel_size == 1 and os.environ.get("VLLM_ENABLE_V1_MULTIPROCESSING") == "0":
        arguments["distributed_executor_backend"] = "uni"
    if options.executor is not None:
        arguments["distributed_executor_backend"] = options.executor
    if options.adapter is not None:
        # Two, so that the next can be rolled out while replies with this one are under way.
        arguments |= {"enable_lora": True, "max_loras": 2, "max_lora_rank": _lora_rank(options.adapter[1])}
    return arguments


def _lora_rank(folder: Path) -> int:
    path = folder / "adapter_config.json"
    if not path.is_file():
        raise ModelUnusableError(f"{folder} is no LoRA adapter: it has no adapter_config.json.")
    rank = int(json.loads(path.read_text())["r"])
    if rank > _LORA_RANKS[-1]:
        raise ModelUnusableError(f"The adapter in {folder} has rank {rank}: train one of at most {_LORA_RANKS[-1]}.")
    return next(allowed for allowed in _LORA_RANKS if allowed >= rank)


def _sampling(request: Generation) -> SamplingParams:
    return SamplingParams(
        temperature=request.temperature,
        max_tokens=request.max_tokens,
        output_kind=RequestOutputKind.DELTA,
        structured_outputs=_constraint(request),
    )


def _constraint(request: Generation) -> StructuredOutputsParams | None:
    if request.grammar is not None:
        return StructuredOutputsParams(regex=request.grammar)
    return StructuredOutputsParams(json=request.schema) if request.schema is not None else None
