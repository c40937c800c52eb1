"""Put small models of torch, torchvision, timm, transformers and diffusers through all that the package does.

Each model has random weights and runs in a process of its own: graphs of the forward pass and of training,
plans for two and four devices, a placed step, a step of two processes under 1F1B, a measured run, and plans
for other tools, read back. Results are kept in ``scripts/benchmarks/zoo.json`` model by model, so that a part
of the models or steps can be run again, and the table of ``docs/zoo.md`` is written from them.

``pip install torchvision timm transformers diffusers`` first; models whose library is missing say so.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from textwrap import shorten
from typing import Any

import torch
from model_zoo.checks import STEPS, Zoo
from model_zoo.models import MODELS, made

ROOT = Path(__file__).resolve().parent.parent
RESULTS, PAGE = ROOT / "scripts" / "benchmarks" / "zoo.json", ROOT / "docs" / "zoo.md"
BEGIN, END = "<!-- table of models, written by scripts/zoo.py -->", "<!-- end of the table of models -->"
NAMES = {"pipeline": "1F1B"}  # of steps, where the page has another one than the results
FOR_ALL = ("torch", "deepspeed", "accelerate", "onnx")  # tools that the page names once
LONGEST = 240  # characters of an error on the page
NOT_TRACED = "torch (its front end refuses the model)"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code, which is 1 if a model that was asked for failed."""
    parser = argparse.ArgumentParser(prog="zoo", description=__doc__)
    parser.add_argument("names", nargs="*", help="models or libraries (all)")
    parser.add_argument("--steps", default=",".join(STEPS), help="steps to run (all)")
    parser.add_argument("--seconds", type=float, default=300.0, help="the most that a model may take (300)")
    parser.add_argument("--table", action="store_true", help="write the table from the results, run nothing")
    options = parser.parse_args(arguments)
    results: dict[str, dict[str, str]] = {}
    if RESULTS.exists():
        results = json.loads(RESULTS.read_text(encoding="utf-8"))
    chosen = [name for name in MODELS if {name, MODELS[name][0]} & {*options.names} or not options.names]
    failed = 0
    for name in () if options.table else chosen:
        found = in_process(name, options.steps.split(","), options.seconds)
        failed += "failed" in found
        print(f"{name}: {found}", flush=True)
        results[name] = merged(results.get(name, {}), found)
        RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(with_table(page, results), encoding="utf-8")
    return int(failed > 0)


def merged(before: dict[str, str], found: dict[str, str]) -> dict[str, str]:
    """Return the results of steps that were run before with those of steps that were run again."""
    steps = {key: value for key, value in (before | found).items() if key in STEPS}
    late = "failed" in found or before.get("failed") in {*found, "model", "time", "process"}
    last = found if late else before
    ended = {key: last[key] for key in ("failed", "error") if key in last}
    return {key: value for key, value in steps.items() if key != ended.get("failed")} | ended


def outcome(name: str, steps: Sequence[str]) -> dict[str, str]:
    """Return what each step says of a model; of the first that fails, its name and the error."""
    found: dict[str, str] = {}
    step = "model"
    try:
        zoo = Zoo(made(name))
        for step in steps:
            found[step] = STEPS[step](zoo)
    except Exception as error:  # models and libraries raise errors of any type
        line = str(error).strip().splitlines() or [""]
        found |= {"failed": step, "error": f"{type(error).__name__}: {line[0]}"}
    return found


def in_process(name: str, steps: Sequence[str], seconds: float) -> dict[str, str]:
    """Return the outcome of a model in a process of its own."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(name, steps, sender))
    process.start()
    sender.close()
    try:
        ended = receiver.poll(seconds)
        found: dict[str, str] = receiver.recv() if ended else {"failed": "time", "error": f"{seconds:g} s"}
    except EOFError:
        found = {"failed": "process", "error": "it ended"}
    process.kill()
    process.join()
    return found


def _work(name: str, steps: Sequence[str], sender: Any) -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    sender.send(outcome(name, steps))


def with_table(page: str, results: dict[str, dict[str, str]]) -> str:
    """Return the page with what the results show between its two marks."""
    before, rest = page.split(BEGIN)
    known = {name: results[name] for name in MODELS if name in results}
    parts = [BEGIN, _head(known), _table(known), *filter(None, [_open(known)]), END]
    return before + "\n\n".join(parts) + rest.split(END)[1]


def further_tools(text: str) -> str:
    """Return the tools that not all models have.

    Examples
    --------
    >>> further_tools("torch (its front end refuses the model), megatron, deepspeed, accelerate, onnx")
    'megatron; not torch'
    """
    tools = ", ".join(tool for tool in text.split(", ") if tool not in {*FOR_ALL, NOT_TRACED}) or "none"
    return f"{tools}; not torch" if NOT_TRACED in text else tools


def titled(name: str, found: dict[str, str]) -> str:
    """Return a model with the nodes of its graph for training, and the largest gap of its plans above 0.

    Examples
    --------
    >>> titled("LSTM", {"training": "32 nodes", "solve": "1%, 40%, 0%, 3%"})
    'LSTM (32, 40%)'
    """
    gaps = [int(gap.rstrip("%")) for gap in found.get("solve", "").split(", ") if gap.endswith("%")]
    largest = max(gaps, default=0)
    figures = [found.get("training", "").removesuffix(" nodes"), f"{largest}%" if largest else ""]
    text = ", ".join(filter(None, figures))
    return f"{name} ({text})" if text else name


def _head(known: dict[str, dict[str, str]]) -> str:
    """Return how many models pass, and the largest difference of a gradient that a step has."""
    passed = sum("failed" not in found for found in known.values())
    measured = sum("verify" in found for found in known.values())
    place, pipeline = (
        max((float(found[step].split(",")[0]) for found in known.values() if step in found), default=0.0)
        for step in ("place", "pipeline")
    )
    return (
        f"{passed} of {len(known)} models pass every step that was run; {measured} were measured. "
        f"Gradients differ by at most {place:.0e} in placed steps and {pipeline:.0e} under 1F1B."
    )


def _table(known: dict[str, dict[str, str]]) -> str:
    """Return a row for each set of tools, with the models that these can express."""
    rows: dict[str, list[str]] = {}
    for name, found in known.items():
        tools = further_tools(found["exports"]) if "exports" in found else "not tried"
        rows.setdefault(tools, []).append(titled(name, found))
    lines = [f"| {tools} | {', '.join(names)} |" for tools, names in sorted(rows.items())]
    return "\n".join(["| further tools | models |", "| --- | --- |", *lines])


def _open(known: dict[str, dict[str, str]]) -> str:
    """Return a line for each model that ended early, with the reason, or for which steps were not run."""
    lines = []
    for name, found in known.items():
        missing = [NAMES.get(step, step) for step in STEPS if step not in found and step != "verify"]
        if "failed" in found:
            error = shorten(found["error"], LONGEST, placeholder=" ...")
            lines.append(f"- {name}, {NAMES.get(found['failed'], found['failed'])}: {error}")
        elif missing:
            lines.append(f"- {name}: not run: {', '.join(missing)}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
