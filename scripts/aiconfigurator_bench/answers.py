"""What `plan_serving` says of the layout that aiconfigurator finds best."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import partitioner as pt
from aiconfigurator_bench.questions import DEVICES, Question
from partitioner.planning.layouts.question import decoder_to_train
from partitioner.planning.pools.pool import kinds_of
from partitioner.planning.serving.costs import ServingCosts, ServingLoad
from partitioner.planning.serving.pipelines import PipelineRun, ServingLayout

NODE, NETWORK, DTYPE, TOP = 8, 25e9, "bfloat16", 12


@dataclass(frozen=True)
class Compared:
    """A question, the layout that aiconfigurator finds best, its figures and ours by name, and its place."""

    question: Question
    layout: dict[str, Any]
    theirs: dict[str, float]
    ours: dict[str, float]
    place: float

    @property
    def off(self) -> dict[str, float]:
        """The part by which ours differ."""
        return {name: abs(self.ours[name] / value - 1) for name, value in self.theirs.items()}

    @property
    def cells(self) -> list[str]:
        """The cells of the table."""
        one = layout_of(self.question, self.layout)
        expert = f" EP{one.expert}" if one.expert > 1 else ""
        found = [self.question.name, f"{one.copies} x TP{one.tensor[0]}{expert} B{one.batch}"]
        for name, value in self.theirs.items():
            found += [f"{value:,.1f}", f"{self.ours[name]:,.1f}", f"{self.ours[name] / value - 1:+.1%}"]
        return [*found, "-" if self.place == math.inf else str(int(self.place))]

    @classmethod
    def of(cls, question: Question, answer: dict[str, Any]) -> Compared:
        """Return the row of a question from the package's answer."""
        layout = answer["layouts"][0]
        theirs = {"tokens/s": layout["rate"]} | {name: answer["alone"][name] for name in ("prompt", "step")}
        return cls(question, layout, theirs, _ours(question, answer), _place(question, answer))


def layout_of(question: Question, layout: dict[str, Any]) -> ServingLayout:
    """Return its layout as one of ours: GPUs with whole attention that divide experts are copies of a stage.

    Whether they divide each expert or the experts is not told apart.
    """
    kinds = kinds_of({DEVICES[question.system]: question.gpus}, NODE, DTYPE)
    copies, expert = layout["copies"] * layout["dp"], layout["dp"]
    return ServingLayout(kinds, (layout["tp"],), (layout["pp"],), copies, layout["bs"], expert)


def _ours(question: Question, answer: dict[str, Any]) -> dict[str, float]:
    """Return our tokens per second of the layout, and the milliseconds of a prompt and of a step alone."""
    load = ServingLoad(question.prompt, question.generate)
    costs = ServingCosts(decoder_to_train(answer["config"]), load, DTYPE, NETWORK)
    run = PipelineRun(costs, layout_of(question, answer["layouts"][0]))
    found, _ = run.solved(None, None)
    layers = run.layers[0]
    rate = math.nan if found is None else found.tokens_per_second
    return {"tokens/s": rate, "prompt": float(layers.prefill.sum()), "step": float(layers.decode.sum())}


def _place(question: Question, answer: dict[str, Any]) -> float:
    """Return the place in our table of the first row with the layout's workers, with any batch."""
    wanted, device = layout_of(question, answer["layouts"][0]), DEVICES[question.system]
    found = pt.plan_serving(
        answer["config"],
        {device: question.gpus},
        prompt=question.prompt,
        generate=question.generate,
        ttft=question.ttft,
        tpot=question.tpot,
        node=NODE,
        network=NETWORK,
        servers="same",
        top=TOP,
    )
    for place, row in enumerate(found.rows, start=1):
        (pipeline,) = row.pipelines
        if replace(pipeline.layout, batch=wanted.batch) == wanted:
            return place
    return math.inf
