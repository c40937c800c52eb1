"""A profile becomes a workload: forward and backward nodes of one colour, mirrored edges, costs, sizes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from partitioner import OptionError, Workload, WorkloadError, solve
from partitioner.formats.pipedream import load_pipedream

FIELDS = "forward_compute_time={}, backward_compute_time={}, activation_size={}, parameter_size={}"
TEXT = "\n".join(
    [
        "node1 -- Input0 -- " + FIELDS.format(0, 0, 300, 0),
        "node2 -- Embedding -- " + FIELDS.format(1, 2, "[600; 200]", 50) + " -- stage_id=0",
        "node3 -- Linear -- " + FIELDS.format(3, 4, 500, 70) + " -- stage_id=1",
        "\tnode1 -- node2",
        "\tnode2 -- node3",
    ]
)


@pytest.fixture
def profile_file(tmp_path: Path) -> Path:
    path = tmp_path / "net.txt"
    path.write_text(TEXT, encoding="utf-8")
    return path


def loaded(path: Path, **options: Any) -> Workload:
    return load_pipedream(path, **({"bandwidth": 1e5, "accelerators": 2} | options))


def test_training_has_mirrored_backward_nodes(profile_file: Path) -> None:
    """At 1e5 bytes a second 100 bytes take a millisecond."""
    workload = loaded(profile_file, memory=1000.0)
    graph = workload.graph
    assert workload.name == "net" and graph.kinds == ("accelerator",)
    forward = ("node1", "node2", "node3")
    assert graph.ids == forward + tuple(f"{node}/backward" for node in forward)
    assert graph.names == ("Input0", "Embedding", "Linear") * 2
    assert graph.time.tolist() == [[0.0, 1.0, 3.0, 0.0, 2.0, 4.0]]
    assert graph.backward.tolist() == [False] * 3 + [True] * 3
    assert graph.color.tolist() == [0, 1, 2] * 2 and graph.color_labels == forward
    assert (graph.size + graph.parts.sum(axis=0)).tolist() == [300.0, 850.0, 570.0, 0.0, 50.0, 70.0]
    assert graph.edges.tolist() == [[0, 1], [1, 2], [4, 3], [5, 4]]
    assert graph.cost.tolist() == [3.0, 8.0, 3.0, 8.0]
    assert workload.devices.kinds[0].memory == 1000.0


def test_memory_and_links_serve_schedules_and_replicas(profile_file: Path) -> None:
    """Weights are exchanged at 100 bytes a millisecond, and only forward nodes have any."""
    workload = loaded(profile_file)
    parameters, gradients, optimizer, activations, workspace = workload.graph.parts.tolist()
    assert parameters == [0.0, 50.0, 70.0, 0.0, 0.0, 0.0] == workload.graph.weights.tolist()
    assert gradients == parameters[3:] + parameters[:3]
    assert activations == [300.0, 800.0, 500.0, 0.0, 0.0, 0.0]
    assert not any(optimizer + workspace)
    assert [kind.bandwidth for kind in workload.devices.kinds] == [100.0, None]


def test_inference_has_forward_nodes_only(profile_file: Path) -> None:
    graph = loaded(profile_file, training=False).graph
    assert graph.ids == ("node1", "node2", "node3") and (graph.color == -1).all()
    assert (graph.size + graph.parts.sum(axis=0)).tolist() == [0.0, 50.0, 70.0] and not graph.backward.any()
    assert graph.edges.tolist() == [[0, 1], [1, 2]] and graph.cost.tolist() == [3.0, 8.0]


def test_cpus_are_slower_by_the_factor(profile_file: Path) -> None:
    workload = loaded(profile_file, cpus=1, cpu_factor=5.0, communication="duplex")
    assert workload.graph.kinds == ("accelerator", "cpu")
    assert (workload.graph.time[1] == 5 * workload.graph.time[0]).all()
    assert workload.devices.names == ("accelerator0", "accelerator1", "cpu0")
    assert workload.devices.communication == "duplex"


def test_data_loading_can_be_left_out(profile_file: Path) -> None:
    graph = loaded(profile_file, trimmed=True).graph
    assert graph.ids == ("node2", "node3", "node2/backward", "node3/backward")
    assert graph.edges.tolist() == [[0, 1], [3, 2]]


def test_parameters_and_bytes_are_kept(profile_file: Path) -> None:
    extras = loaded(profile_file).graph.extras
    given = {"bandwidth": 1e5, "cpuFactor": None, "training": True, "trimmed": False}
    assert extras.top == {"timeUnit": "ms", **given}
    assert extras.nodes[0] == {"activationBytes": 300.0, "parameterBytes": 0.0}
    assert extras.nodes[4] == {"activationBytes": 800.0, "parameterBytes": 50.0, "stageId": 0}


def test_workload_can_be_solved(profile_file: Path) -> None:
    """Both on one device takes 10; apart, one pays 8 + 8 for the cut."""
    workload = loaded(profile_file)
    assert solve(workload.graph, workload.devices).value == 10.0
    fast = loaded(profile_file, bandwidth=1e8)
    assert solve(fast.graph, fast.devices).value == pytest.approx(7.0 + 2 * 0.008)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bandwidth": 0}, "bandwidth = 0: must be a number above 0"),
        ({"bandwidth": float("nan")}, "bandwidth = nan"),
        ({"cpus": 1}, "cpu_factor = None"),
        ({"cpu_factor": -2.0}, "cpu_factor = -2.0"),
    ],
)
def test_options_out_of_range_are_named(profile_file: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        loaded(profile_file, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"accelerators": -1}, "device kind accelerator: count"),
        ({"memory": 800.0}, "colour class .node2.: total memory = 900.0: larger than"),
        ({"bandwidth": 1e-300}, "edge 'node1' -> 'node2': cost"),
        ({"cpus": 1, "cpu_factor": 1e200}, "node 'node2': time"),
    ],
)
def test_flaws_of_the_workload_name_the_file(
    profile_file: Path, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(WorkloadError, match=message) as caught:
        loaded(profile_file, **options)
    assert caught.value.source == str(profile_file)


def test_nothing_but_inputs_is_no_workload(tmp_path: Path) -> None:
    path = tmp_path / "inputs.txt"
    path.write_text("node1 -- Input0 -- " + FIELDS.format(0, 0, 300, 0), encoding="utf-8")
    with pytest.raises(WorkloadError, match="at least one"):
        loaded(path, trimmed=True)
