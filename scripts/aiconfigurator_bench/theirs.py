"""Answers questions on standard input by NVIDIA's aiconfigurator; runs by a Python that has the package.

Questions and answers are JSON: a list of objects with the fields of ``questions.Question``, and for each the
model's config and the best layouts with prefill and decode on the same workers, best first.
"""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path
from typing import Any

import aiconfigurator_core  # type: ignore[import-not-found]
from aiconfigurator.cli.api import cli_default, cli_estimate  # type: ignore[import-not-found]

BACKEND, ROWS = "vllm", 5
CONFIGS = Path(aiconfigurator_core.__file__).parent / "model_configs"


def answered(question: dict[str, Any]) -> dict[str, Any]:
    """Return the config of the question's model and its best layouts."""
    model, system = question["model"], question["system"]
    config = json.loads((CONFIGS / f"{model.replace('/', '--')}_config.json").read_text(encoding="utf-8"))
    asked = {"isl": question["prompt"], "osl": question["generate"]}
    limits = {"ttft": question["ttft"], "tpot": question["tpot"]}
    found = cli_default(
        model, question["gpus"], system, backend=BACKEND, top_n=ROWS, **asked, **limits
    ).best_configs["agg"]
    layouts = [_layout(question, row) for _, row in found.iterrows()]
    return {"config": config, "layouts": layouts, "alone": _alone(question, layouts[0]) if layouts else {}}


def _layout(question: dict[str, Any], row: Any) -> dict[str, Any]:
    """Return a row: its degrees, and what all of its workers do together."""
    names = ("tp", "pp", "dp", "moe_tp", "moe_ep", "bs")
    degrees = {name: int(row[name]) for name in names}
    times = {name: float(row[name]) for name in ("ttft", "tpot")}
    rate = float(row["tokens/s/gpu_cluster"]) * question["gpus"]
    return degrees | times | {"copies": question["gpus"] // int(row["num_total_gpus"]), "rate": rate}


def _alone(question: dict[str, Any], layout: dict[str, Any]) -> dict[str, float]:
    """Return the milliseconds of one prompt, and of a step of the layout's batch, without a schedule."""
    degrees = {"tp_size": layout["tp"], "pp_size": layout["pp"], "attention_dp_size": layout["dp"]}
    if layout["moe_tp"] * layout["moe_ep"] > 1:
        degrees |= {"moe_tp_size": layout["moe_tp"], "moe_ep_size": layout["moe_ep"]}
    asked = {"isl": question["prompt"], "osl": question["generate"], "backend_name": BACKEND, **degrees}
    model, system = question["model"], question["system"]
    prompt = cli_estimate(model, system, mode="static_ctx", batch_size=1, **asked)
    steps = cli_estimate(model, system, mode="static_gen", batch_size=layout["bs"], **asked)
    return {"prompt": float(prompt.ttft), "step": float(steps.tpot)}


def main() -> None:
    """Read the questions, and print the answers."""
    logging.disable(logging.CRITICAL)
    questions = json.load(sys.stdin)
    out, sys.stdout = sys.stdout, sys.stderr  # what the package prints
    json.dump([answered(question) for question in questions], out)


if __name__ == "__main__":
    main()
