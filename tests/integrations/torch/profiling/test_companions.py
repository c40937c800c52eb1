"""Companions run while something is measured and have ended afterwards; gradients are added up."""

from __future__ import annotations

import multiprocessing
import os
import time
from pathlib import Path
from typing import Any

import pytest

from partitioner.base.errors import OptionError
from partitioner.integrations.torch import profile
from partitioner.integrations.torch.profiling.options import ProfileOptions

torch = pytest.importorskip("torch", reason="profiles of torch's models need torch")
from torch import nn  # noqa: E402

from partitioner.integrations.torch.graphs.capture import seen_and_captured  # noqa: E402
from partitioner.integrations.torch.profiling.measure import companions  # noqa: E402
from partitioner.integrations.torch.profiling.runnable import RunnableGraph  # noqa: E402
from tests.integrations.torch.models import made  # noqa: E402

QUICK: dict[str, Any] = {"bandwidth": 1e9, "warm_up": 0, "tolerance": 1e9}
CLOCK_TICKS = os.sysconf("SC_CLK_TCK")


def program_of(name: str, accumulate: bool = False) -> Any:
    model, args = made(name)
    seen, capture = seen_and_captured(model, args, {}, True, None, ())
    return RunnableGraph(seen, args, {}, "cpu", accumulate), capture


def processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / CLOCK_TICKS


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs the processor times of Linux")
def test_companions_work_until_the_context_ends() -> None:
    program, _ = program_of("experts")
    with companions(program, 2):
        running = multiprocessing.active_children()
        assert len(running) == 2
        before, ends = [processor_seconds(each.pid or 0) for each in running], time.monotonic() + 30
        while time.monotonic() < ends:
            now = [processor_seconds(each.pid or 0) for each in running]
            if all(later > earlier for earlier, later in zip(before, now, strict=True)):
                break
            time.sleep(0.02)
        else:
            pytest.fail("a companion did not run")
    assert not multiprocessing.active_children()


def test_companions_end_when_what_is_measured_fails() -> None:
    program, _ = program_of("experts")
    with pytest.raises(ZeroDivisionError), companions(program, 1):
        raise ZeroDivisionError
    assert not multiprocessing.active_children()


def test_every_gradient_is_added_once_a_run() -> None:
    program, capture = program_of("cnn", accumulate=True)
    sums: dict[int, Any] = {}

    def call(target: Any, args: Any, kwargs: Any) -> Any:
        if hasattr(target, "args") and target.args and isinstance(target.args[-1], torch.Tensor):
            sums[id(target.args[-1])] = target.args[-1]
        return target(*args, **kwargs)

    program.run(call, lambda: None)
    once = {key: each.clone() for key, each in sums.items()}
    program.run(call, lambda: None)
    assert len(sums) == len(capture.gradients)
    assert all(torch.allclose(sums[key], 2 * once[key], atol=1e-4, rtol=1e-3) for key in once)
    assert any(each.any() for each in sums.values())


def test_a_profile_of_a_pipeline_is_kept_apart_from_others(tmp_path: Path) -> None:
    model, args = made("experts")
    for options in ({}, {"beside": 1}, {"accumulate": True}, {"beside": 1, "accumulate": True}):
        profile(model, args, cache=tmp_path, **QUICK, **options)
    assert len(list(tmp_path.iterdir())) == 4
    assert (
        ProfileOptions("cpu", "elapsed", 0, 0.0, 0.0, None, 1, True).manner
        == "elapsed, 1 beside, accumulated"
    )


def test_an_lstm_is_trained_and_a_note_says_what_is_wrong() -> None:
    """On a CPU it is one operator, whose backward pass needs the workspace of its forward pass."""
    found = profile(nn.LSTM(8, 8), (torch.randn(3, 2, 8),), **QUICK).graph
    if torch.backends.mkldnn.is_available():
        assert any("LSTMs" in note for note in found.extras.top["notes"])
    assert found.time.sum() > 0
    plain = profile(nn.LSTM(8, 8), (torch.randn(3, 2, 8),), **QUICK, training=False).graph
    assert not any("LSTMs" in note for note in plain.extras.top["notes"])


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"beside": -1}, "beside = -1: must be an integer of at least 0"),
        ({"beside": 1, "device": "cuda"}, "beside = 1: must be 0 for device = 'cuda'"),
        ({"accumulate": 1}, "accumulate = 1: must be true or false"),
    ],
)
def test_an_option_out_of_range_is_named(options: dict[str, Any], text: str) -> None:
    model, args = made("experts")
    with pytest.raises(OptionError, match=text):
        profile(model, args, **QUICK, **options)
