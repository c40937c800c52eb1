"""A simulated plan has the times and the memory of its chosen alternatives, and a row for each copy."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import partitioner as pt
from partitioner.exports.chrome_trace import chrome_trace
from partitioner.exports.torch_schedule import refuse_groups
from partitioner.formats.timeline import load_timeline
from partitioner.results.timeline_table import timeline_table
from partitioner.schedule import simulate
from tests.evaluation.test_alternatives import GPUS, PLACE, REPLICAS, graph
from tests.methods.slow_parameters import slow
from tests.random_alternatives import devices_of, options_of, random_case

CHOSEN: dict[int | str, str] = dict.fromkeys(PLACE, "pair")
SOLUTION = pt.Solution(PLACE, replicas=REPLICAS, alternatives=CHOSEN)
BATCH = 12


def test_pairs_of_devices_run_a_copy_together() -> None:
    """Two copies on two devices each: 4 to compute, 1.75 to send, 1.5 to exchange; then 1.25 and 3."""
    found = simulate(graph(), GPUS, SOLUTION, "inference", 2)
    assert found.devices == ("gpu0", "gpu2", "gpu4")
    assert found.groups == (("gpu0", "gpu1"), ("gpu2", "gpu3"), ("gpu4", "gpu5"))
    assert "on 6 devices" in repr(found)
    first = found.begin[0].tolist(), found.end[0].tolist()
    assert first == ([0, 0, 4, 4 + 1.75], [0, 4, 4 + 1.75, 4 + 1.75 + 1.5])
    assert found.makespan == 5.75 + 2 * 4.25 and found.bound == 4.25
    assert found.peak_memory.tolist() == [3 + 5, 3 + 5, 3 + 10]


def test_with_direct_links_only_the_receiver_pays() -> None:
    found = simulate(graph(), GPUS, SOLUTION, "inference", 1, links="direct")
    assert found.makespan == 4 + 1.25 + 3


def test_torch_has_no_words_for_devices_that_run_a_stage_together() -> None:
    found = simulate(graph(), GPUS, SOLUTION, "inference", 1)
    with pytest.raises(pt.WorkloadError, match="stage 1: is run by gpu4, gpu5 together: torch's file"):
        refuse_groups(found)
    refuse_groups(replace(found, together={}))


def test_rows_name_all_their_devices(tmp_path: Path) -> None:
    found = simulate(graph(), GPUS, SOLUTION, "inference", 2)
    lines = timeline_table(found, 80).splitlines()
    assert [line.split()[:2] for line in lines[3:6]] == [["gpu0-1", "1"], ["gpu2-3", "1"], ["gpu4-5", "2"]]
    assert '"name": "gpu2-3"' in chrome_trace(found) and '"memory gpu4-5"' in chrome_trace(found)
    found.save(tmp_path / "timeline.json")
    assert load_timeline(tmp_path / "timeline.json").groups == found.groups
    text = (tmp_path / "timeline.json").read_text()
    for wrong, rule in (('["gpu3", "gpu2"]', "must be 'gpu2' and"), ('["gpu2", "gpu4"]', "is given twice")):
        (tmp_path / "timeline.json").write_text(text.replace('["gpu2", "gpu3"]', wrong))
        with pytest.raises(pt.WorkloadError, match=rule):
            load_timeline(tmp_path / "timeline.json")


def test_devices_that_are_no_multiple_of_the_degree_are_refused() -> None:
    with pytest.raises(pt.WorkloadError, match="the stage of gpu0 has 1 devices, which are no multiple of 2"):
        simulate(graph(), GPUS, pt.Solution(PLACE, alternatives=CHOSEN), "inference", 2)


@pytest.mark.parametrize("count", [40, slow(400)])
def test_random_plans_have_the_loads_and_the_memory_of_the_evaluator(count: int) -> None:
    """The bound is the value of the plan; the memory is at most that of the schedule's rule."""
    tried = equal = 0
    for seed in range(count):
        case = random_case(np.random.default_rng(seed))
        training = "1f1b" if case.schedule in (None, "inference") else case.schedule
        case = replace(case, piper=False, schedule=training if case.graph.backward.any() else "inference")
        try:
            plan = pt.solve(case.graph, devices_of(case), **options_of(case))
        except (pt.InfeasibleError, pt.WorkloadError):
            continue
        batch = case.microbatches or BATCH
        found = simulate(case.graph, devices_of(case), plan, case.schedule, batch)
        value = pt.evaluate(case.graph, devices_of(case), plan, microbatches=batch).value
        assert found.bound == pytest.approx(value)
        limit = {load.name: load.memory for load in plan.devices}
        reached = np.array([limit[name] for name in found.devices])
        assert (found.peak_memory <= reached * (1 + 1e-9) + 1e-9).all()
        used = sorted(name for group in found.groups for name in group)
        assert used == sorted(load.name for load in plan.devices if load.nodes or load.replica_of)
        assert all(len(group) == stage_degree(plan, group[0]) for group in found.groups)
        equal += bool((found.peak_memory >= reached * (1 - 1e-9)).all())
        tried += 1
    assert tried > count / 2 and equal > tried / 2


def stage_degree(plan: pt.Plan, device: str) -> int:
    """The degree of the stage that a device belongs to."""
    (found,) = [stage.degree for stage in plan.by_stage if device in stage.devices]
    return found
