"""The time of every call of an encoder, as metrics. The names are those of the response headers."""

from __future__ import annotations

from ray.util.metrics import Counter, Histogram

from serving.answer.types import Phases

_BOUNDARIES_S = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0]
_TAGS = ("model",)


class PhaseMetrics:
    """Histograms of seconds and counters of tokens, for the model that a deployment runs.

    ``answer_encoder_padded_tokens`` over ``answer_encoder_tokens`` is what padding costs.
    """

    def __init__(self, model: str) -> None:
        self._tags = {"model": model}
        self._seconds = {
            name: Histogram(f"answer_encoder_{name}_seconds", said, boundaries=_BOUNDARIES_S, tag_keys=_TAGS)
            for name, said in {
                "tokenise": "Reading a call's texts as tokens.",
                "queue": "A call's rows waiting for the device.",
                "compute": "The forward passes that held a call's rows.",
                "total": "A call from its arrival at the model to its result.",
            }.items()
        }
        self._tokens = Counter("answer_encoder_tokens", "Tokens of all rows.", tag_keys=_TAGS)
        self._padded = Counter("answer_encoder_padded_tokens", "Token slots of all rows, padded.", tag_keys=_TAGS)

    def record(self, phases: Phases) -> None:
        for name, seconds in (
            ("tokenise", phases.tokenise_s),
            ("queue", phases.queue_s),
            ("compute", phases.compute_s),
            ("total", phases.total_s),
        ):
            self._seconds[name].observe(seconds, tags=self._tags)
        for counter, tokens in ((self._tokens, phases.tokens), (self._padded, phases.padded_tokens)):
            if tokens:  # Ray refuses to add nothing
                counter.inc(tokens, tags=self._tags)
