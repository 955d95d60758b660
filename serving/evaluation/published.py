"""Published figures that the harness is pinned to, as data. Percent throughout; None where a paper gives none.

MAUVE stands here for reference: it needs GPT-2 large, its authors call it unstable, and nothing here computes it.
"""

from __future__ import annotations

from dataclasses import dataclass

ALCE = "Gao et al. 2023, Enabling Large Language Models to Generate Text with Citations (EMNLP), ASQA tables"
SELF_RAG = "Asai et al. 2024, Self-RAG (ICLR), table 2"
RAGEVAL = "gomate-community/rageval, README: a third party's run"

ASQA_ITEMS = 948
"""Items of ASQA's development set, which every row of :data:`ASQA` is on."""


@dataclass(frozen=True, slots=True)
class Published:
    """A system on ASQA: MAUVE, exact-match recall of short answers, citation recall and citation precision."""

    system: str
    mauve: float | None
    em: float | None
    recall: float | None
    precision: float | None
    source: str = ALCE


ASQA = (
    Published("ChatGPT Vanilla, 5 passages", 66.6, 40.4, 73.6, 72.5),
    Published("ChatGPT Vanilla, 5 passages, Rerank", 77.0, 40.2, 84.8, 81.6),
    Published("ChatGPT Summ, 10 passages", 70.0, 43.3, 68.9, 61.8),
    Published("ChatGPT Summ + Interact", 69.0, 39.1, 73.4, 66.5),
    Published("ChatGPT Snippet, 10 passages", 69.8, 41.4, 65.3, 57.4),
    Published("ChatGPT InlineSearch", 58.7, 32.4, 58.3, 58.2),
    Published("ChatGPT ClosedBook + PostCite", 52.7, 38.3, 26.7, 26.7),
    Published("ChatGPT Oracle, 5 passages", 64.4, 48.9, 74.5, 72.7),
    Published("ChatGPT Vanilla, 1 passage", 69.5, 38.4, 56.0, 64.0),
    Published("ChatGPT Vanilla, 3 passages", 66.6, 39.6, 72.8, 73.9),
    Published("ChatGPT Vanilla, DPR, 5 passages", 61.8, 36.1, 65.0, 65.6),
    Published("ChatGPT-16K, 5 passages", 60.3, 36.1, 76.2, 76.5),
    Published("ChatGPT-16K, 10 passages", 56.3, 36.7, 75.3, 75.0),
    Published("ChatGPT-16K, 20 passages", 56.7, 36.1, 73.7, 73.5),
    Published("GPT-4, 5 passages", 67.1, 41.3, 68.5, 75.6),
    Published("GPT-4, 10 passages", 71.5, 43.1, 72.0, 75.5),
    Published("GPT-4, 20 passages", 64.9, 44.4, 73.0, 76.5),
    Published("LLaMA-13B", 68.4, 26.9, 10.6, 15.4),
    Published("Vicuna-13B", 82.6, 31.9, 51.1, 50.1),
    Published("Vicuna-13B, Rerank", 73.5, 32.9, 71.9, 65.4),
    Published("LLaMA2-Chat-13B", 72.4, 35.2, 38.4, 39.4),
    Published("LLaMA2-Chat-70B", 88.3, 41.5, 62.9, 61.3),
    Published("ChatGPT Vanilla, no demonstration", None, None, 69.3, 73.4),
    Published("ChatGPT Vanilla, 1 demonstration", None, None, 74.6, 73.2),
    Published("Top passage, citing itself", 20.8, 35.1, 99.4, 99.4),
    Published("First two sentences of the top passage", 67.2, 18.9, 98.7, 98.7),
    Published("Self-RAG 7B", 74.3, 30.0, 67.8, 66.9, SELF_RAG),
    Published("Self-RAG 13B", 71.6, 31.7, 70.3, 71.3, SELF_RAG),
    Published("Ret-ChatGPT", None, None, 76.6, 65.1, SELF_RAG),
    Published("Llama-2-7b-chat, 5 passages", None, 33.35, 55.90, 80.04, RAGEVAL),
)

RECALL_OF_ANSWERS = {
    "GTR": {1: 35.1, 3: 50.7, 5: 56.8, 20: 70.3, 100: 78.4},
    "DPR": {1: 29.6, 3: 44.5, 5: 51.5, 20: 64.6, 100: 74.1},
    "Oracle": {5: 63.8, 20: 72.8, 100: 78.4},
}
"""Exact-match recall of the first k retrieved passages, by retriever (ALCE, ASQA)."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """One system's citations as people judged them and as ALCE's metric did, on the same answers of ASQA."""

    system: str
    human_recall: float
    human_precision: float
    metric_recall: float
    metric_precision: float


HUMAN_AGREEMENT = (
    Agreement("ChatGPT Vanilla", 74.7, 76.6, 75.3, 74.4),
    Agreement("ChatGPT Vanilla, Rerank", 79.3, 81.9, 83.9, 80.8),
    Agreement("Vicuna-13B", 51.6, 51.5, 50.3, 50.1),
)
"""Rerank picks among answers by the metric's own model, and the metric then flatters it by 4.6 points of recall: why
the model that gates answers must never grade them."""

KAPPA_RECALL, KAPPA_PRECISION = 0.698, 0.525
ACCURACY_RECALL, ACCURACY_PRECISION = 85.1, 77.6
"""Cohen's kappa and percent agreement of the metric with people, single judgements, ASQA."""

RAGAS_AGREEMENT = {"faithfulness": 0.95, "answer relevance": 0.78, "context relevance": 0.70}
"""How often RAGAS prefers the same of two answers as people do (its authors, WikiEval)."""

LOST_BY_A_STRICT_FLOOR = 40.0
"""Percent of answerable questions that a score floor lost elsewhere once it stopped every unanswerable one. Experience,
not an experiment: of another system on other questions, given here to compare the order of magnitude."""
