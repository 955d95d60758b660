"""The peer that most people write: sentence-transformers' ``CrossEncoder.predict`` behind a plain FastAPI route.

Runs in an environment of its own, and imports nothing of ours.
"""

from __future__ import annotations

import argparse

import torch
import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel
from sentence_transformers import CrossEncoder


class Asked(BaseModel):
    query: str
    documents: list[str]
    model: str | None = None


def application(folder: str, dtype: str) -> FastAPI:
    app = FastAPI()
    model = CrossEncoder(folder, device="cpu", max_length=512, model_kwargs={"dtype": getattr(torch, dtype)})

    @app.get("/health")
    def health() -> dict[str, str]:
        return {"status": "ok"}

    @app.post("/rerank")
    def rerank(asked: Asked) -> dict[str, list[dict[str, float]]]:
        scores = model.predict([(asked.query, document) for document in asked.documents], show_progress_bar=False)
        order = sorted(range(len(scores)), key=lambda index: -scores[index])
        return {"results": [{"index": index, "relevance_score": float(scores[index])} for index in order]}

    return app


if __name__ == "__main__":
    options = argparse.ArgumentParser()
    options.add_argument("--model", required=True)
    options.add_argument("--dtype", required=True)
    options.add_argument("--port", type=int, required=True)
    chosen = options.parse_args()
    uvicorn.run(application(chosen.model, chosen.dtype), port=chosen.port, log_level="warning")
