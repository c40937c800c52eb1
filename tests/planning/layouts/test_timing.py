"""Memory of a layout is the evaluator's on the workload of its config; times are those of formulas."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import partitioner as pt
from partitioner.estimation.device_time import BANDWIDTH_REACHED
from partitioner.estimation.named_devices import named_device
from partitioner.formats.hugging_face import decoder_of
from partitioner.planning.layouts.costs import ModelCosts
from partitioner.planning.layouts.layout import Cluster, ClusterLayout
from partitioner.planning.layouts.timing import LayoutRun
from tests.planning.layouts.cases import random_search

CONFIG: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 256,
    "intermediate_size": 1024,
    "num_hidden_layers": 8,
    "num_attention_heads": 8,
    "num_key_value_heads": 8,
    "vocab_size": 1000,
}


@pytest.mark.parametrize(
    "layout",
    [
        ClusterLayout(pipeline=4, data=2),
        ClusterLayout(tensor=2, pipeline=2, data=2, microbatch=2, recompute="full"),
        ClusterLayout(tensor=2, pipeline=4, recompute="full"),
        ClusterLayout(pipeline=2, data=4, zero=1),
    ],
    ids=lambda layout: layout.name,
)
def test_memory_is_that_of_the_evaluator(layout: ClusterLayout, tmp_path: Path) -> None:
    """The evaluator counts it from the nodes of the workload, with its own rule of samples in flight."""
    run = run_of(layout, 16)
    (file := tmp_path / "config.json").write_text(json.dumps(CONFIG), encoding="utf-8")
    workload = pt.load_config(
        file,
        sequence=128,
        device="A100-80",
        bandwidth=1e9,
        accelerators=layout.pipeline,
        batch=layout.microbatch,
        tensor=layout.tensor,
        sequence_parallel=layout.tensor > 1,
        data_parallel=layout.data,
        zero=layout.zero,
        recompute=layout.recompute,
    )
    stage = stage_by_block(workload.graph, layout.pipeline)
    placement = {node: f"accelerator{stage[node]}" for node in workload.graph.ids}
    evaluation = pt.evaluate(
        workload.graph, workload.devices, placement, schedule="1f1b", microbatches=layout.microbatches(16)
    )
    assert run.memory.max() == pytest.approx(max(load.memory for load in evaluation.loads), rel=1e-9)


def stage_by_block(graph: pt.Graph, stages: int) -> dict[int | str, int]:
    """Return the stage of every node: equally many blocks each, the embedding first, norm and head last."""
    each, found = CONFIG["num_hidden_layers"] // stages, {}
    for node in graph.ids:
        name = str(node).removesuffix("/backward")
        block = name.removeprefix("model.layers.")
        ends = 0 if "embed" in name else stages - 1
        found[node] = int(block) // each if block.isdecimal() else ends
    return found


def test_an_exchange_is_a_ring_over_the_link_that_the_group_uses() -> None:
    """2 (r - 1) / r of the gradients, over the network where the replicas are in several servers."""
    space, search = random_search(1)
    layout = ClusterLayout(data=space.cluster.gpus)
    run = search.run_of(layout)
    nbytes = run.costs.layers(layout).gradients.sum()
    rate = space.cluster.peer if layout.data <= space.cluster.node else space.cluster.network
    assert layout.data > 1
    expected = 2 * (layout.data - 1) / layout.data * nbytes / rate * 1e3
    waits = 2 * (layout.data - 1) * space.cluster.delay(layout.data)
    np.testing.assert_allclose(run.exchange, expected + waits)


MIXTURE = CONFIG | {"model_type": "mixtral", "num_local_experts": 4, "num_experts_per_tok": 2}
EXPERTS = 2 * 4 * 3 * 256 * 1024  # of the 4 blocks of a stage, 2 of the 4 experts, three products
OTHERS = 4 * (4 * 256**2 + 2 * 256 + 4 * 256)  # attention, norms and router of the blocks
ENDS = 1000 * 256, 256 + 1000 * 256  # the embedding; the last norm and the head


@pytest.mark.parametrize("zero", [0, 1, 2])
def test_experts_are_exchanged_among_the_replicas_that_hold_them(zero: int) -> None:
    """Of 8 replicas that divide 4 experts into halves, 4 hold the same ones; all of them hold the rest.

    Both rings cross servers of 4 GPUs: 25 GB/s and 10 microseconds for each of 14 and 6 messages. The
    optimizer reads gradients and writes parameters, of 2 bytes, and reads and writes 12 bytes of states.
    """
    layout = ClusterLayout(pipeline=2, data=8, expert=2, zero=zero)
    run = run_of(layout, 16, MIXTURE, node=4, latency=1e-5)
    for device, end in enumerate(ENDS):
        rest = OTHERS + end
        sent = 2 * 7 / 8 * 2 * rest / 25e9 + 2 * 3 / 4 * 2 * EXPERTS / 25e9
        assert run.exchange[device] == pytest.approx(1e3 * (sent + (14 + 6) * 1e-5), rel=1e-9)
        own = rest / 8 + EXPERTS / 4 if zero else rest + EXPERTS
        rate = 28 * own / run.step[device]
        assert rate == pytest.approx(run.costs.cluster.device.bandwidth * BANDWIDTH_REACHED / 1e3, rel=1e-9)


def test_replicas_that_divide_parameters_exchange_nothing_after_the_passes() -> None:
    """Passes gather the parameters and sum up the gradients, which takes them longer; nothing is left."""
    divided, whole = (run_of(ClusterLayout(data=8, zero=zero), 16, node=4) for zero in (3, 2))
    assert not divided.exchange.any() and whole.exchange.all()
    assert divided.stages.forward[0] > whole.stages.forward[0]


def test_a_pipeline_takes_the_fill_and_the_batch_of_its_slowest_stage() -> None:
    """The first microbatch passes the first stage; the last stage, which has the head, runs all of them."""
    run = run_of(ClusterLayout(pipeline=2), 8)
    forward, backward = run.stages.forward, run.stages.backward
    fill, slowest = forward[0] + backward[0], forward[1] + backward[1]
    assert slowest > fill
    sent = 2 * run.transfers[0] * (run.microbatches + 1)
    assert fill + 8 * slowest <= run.simulated[1][0] * (1 + 1e-9) <= fill + 8 * slowest + sent


def run_of(
    layout: ClusterLayout,
    global_batch: int,
    config: dict[str, Any] = CONFIG,
    node: int = 8,
    latency: float = 0.0,
) -> LayoutRun:
    """Return the run of a layout of a model on as many A100 as it takes."""
    cluster = Cluster(layout.gpus, named_device("A100-80"), node, 300e9, 25e9, latency, 80e9)
    costs = ModelCosts(decoder_of(config, "config"), cluster, 128, "bfloat16")
    return LayoutRun(costs, layout, global_batch, costs.borders(layout.stages))


def test_no_layout_that_fits_says_what_is_missing() -> None:
    with pytest.raises(pt.InfeasibleError, match=r"none of \d+ layouts fits .* the nearest, TP.* lacks"):
        pt.plan(CONFIG, gpus=2, device="A100-80", global_batch=8, sequence=128, memory=1e3)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"gpus": 0}, "gpus = 0: must be an integer of at least 1"),
        ({"global_batch": 1.5}, "global_batch = 1.5: must be an integer of at least 1"),
        ({"node": 0}, "node = 0: must be an integer of at least 1"),
        ({"network": -1.0}, "network = -1.0: must be a number above 0"),
        ({"runtime": "mine"}, "runtime = 'mine': must be"),
        ({"device": "Z9"}, "device = 'Z9'"),
    ],
)
def test_options_out_of_range_are_refused_by_name(given: dict[str, object], said: str) -> None:
    asked = {"gpus": 2, "device": "A100-80", "global_batch": 8, "sequence": 128} | given
    with pytest.raises(pt.OptionError, match=said.replace(".", r"\.")):
        pt.plan(CONFIG, **asked)  # type: ignore[arg-type]


def test_a_time_limit_ends_the_search_with_the_best_so_far() -> None:
    found = pt.plan(CONFIG, gpus=64, device="A100-80", global_batch=256, sequence=128, time_limit=0.5)
    assert found.rows and found.bound <= found.best.seconds and found.runtime_seconds < 5


@pytest.mark.parametrize("zero", [1, 2])
def test_shares_of_states_are_those_that_the_config_has_with_them(zero: int) -> None:
    """Times without ZeRO and its states divided are what the layers of the config have with it."""
    layout = ClusterLayout(tensor=2, data=4, zero=zero)
    costs = run_of(layout, 16).costs
    derived, computed = costs.layers(layout), costs._computed(layout)
    for name in set(derived._fields) - {"updated"}:
        np.testing.assert_allclose(getattr(derived, name), getattr(computed, name), 1e-7, atol=1e-12)
