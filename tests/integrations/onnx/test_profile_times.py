"""Times come from the profile of a run of ONNX Runtime, node by node; what does not match is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from partitioner import WorkloadError, load
from partitioner.formats.onnx.graph import profile_times
from partitioner.integrations.onnx import graph_of
from tests.integrations.onnx.models import cnn, transformer

FAST = 1e9
NAMES = ["a", "b"]


def profiled(model: Any, inputs: dict[str, Any], folder: Path, runs: int = 3) -> Path:
    """The profile of some runs of a model as it is."""
    runtime = pytest.importorskip(
        "onnxruntime", reason="onnxruntime is missing: pip install 'dnn-partitioner[onnx]'"
    )
    options = runtime.SessionOptions()
    options.enable_profiling, options.profile_file_prefix = True, str(folder / "profile")
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = runtime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    for _ in range(runs):
        session.run(None, inputs)
    return Path(session.end_profiling())


def test_the_profile_of_a_run_gives_the_time_of_every_node(tmp_path: Path) -> None:
    """Also of nodes without names, which ONNX Runtime numbers; the transposed weight does not count."""
    cases: list[tuple[Any, dict[str, Any], dict[str, int] | None]] = [
        (cnn(), {"x": np.ones((2, 3, 8, 8), np.float32)}, None),
        (transformer(), {"ids": np.zeros((3, 5), np.int64)}, {"batch": 3, "time": 5}),
    ]
    for model, inputs, dims in cases:
        path = profiled(model, inputs, tmp_path)
        events = [event for event in json.loads(path.read_text()) if event["cat"] == "Node"]
        graph = graph_of(model, bandwidth=FAST, dims=dims, times=path)
        for name, time in zip(graph.names, graph.time[0], strict=True):
            runs = sorted(each["dur"] for each in events if each["name"] == f"{name}_kernel_time")
            assert len(runs) == 3 and time == pytest.approx(runs[1] / 1e3)
        assert graph.extras.top["times"] == "profile"


def test_the_profile_of_another_model_is_refused(tmp_path: Path) -> None:
    path = profiled(cnn(), {"x": np.ones((2, 3, 8, 8), np.float32)}, tmp_path)
    with pytest.raises(WorkloadError) as caught:
        graph_of(transformer(), bandwidth=FAST, dims={"batch": 3, "time": 5}, times=path)
    rules = {flaw.where: flaw.rule for flaw in caught.value.flaws}
    assert rules["node '/head/MatMul'"].startswith("has no time in the profile; profile with Session")
    assert rules["node 'conv1'"].startswith("is not in the model; profile with Session")


def written(folder: Path, content: Any) -> Path:
    path = folder / "profile.json"
    path.write_text(json.dumps(content))
    return path


def event(name: Any, dur: Any) -> dict[str, Any]:
    return {"cat": "Node", "name": name, "dur": dur}


def test_several_runs_give_their_median_in_milliseconds(tmp_path: Path) -> None:
    rows = [("a", 1000), ("b", 10), ("a", 2000), ("b", 30), ("a", 9000), ("b", 20), ("c", 5)]
    events = [event(f"{name}_kernel_time", dur) for name, dur in rows]
    path = written(tmp_path, [{"cat": "Session", "name": "run"}, *events, event("a_fence_before", 9)])
    assert profile_times(path, NAMES, {"c"}) == [2.0, 0.02]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({}, "profile.json: file: {}: must be a list of events"),
        ([1], "event 0: 1: must be a JSON object"),
        ([event(3, 1)], "event 0: name = 3: must be a text"),
        ([event("a_kernel_time", -1)], "event 0: dur = -1: must be a finite number of at least 0"),
        ([event("a_kernel_time", 1)], "node 'b': has no time in the profile"),
        ([event(f"{name}_kernel_time", 1) for name in "abz"], "node 'z': is not in the model"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, content: Any, words: str) -> None:
    with pytest.raises(WorkloadError) as caught:
        profile_times(written(tmp_path, content), NAMES, set())
    assert words in str(caught.value)


JSON = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda each: st.lists(each, max_size=3) | st.dictionaries(st.sampled_from(["cat", "name", "dur"]), each),
    max_leaves=8,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=JSON)
def test_any_other_content_is_refused(tmp_path: Path, content: Any) -> None:
    with pytest.raises(WorkloadError):
        profile_times(written(tmp_path, content), NAMES, set())


def test_load_takes_a_profile(tmp_path: Path) -> None:
    from tests.integrations.onnx.models import onnx

    model = cnn()
    onnx.save(model, tmp_path / "model.onnx")
    path = profiled(model, {"x": np.ones((2, 3, 8, 8), np.float32)}, tmp_path)
    workload = load(tmp_path / "model.onnx", bandwidth=FAST, times=path, accelerators=2)
    assert workload.graph.extras.top["times"] == "profile"
