"""The benchmark of profiles compares two of each model with a real step, and --check fails if they differ."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="profiles of torch's models need torch")
pytest.importorskip("torch.distributed.pipelining", reason="measured plans need torch's pipelining")
import bench_profile  # noqa: E402

pytestmark = [pytest.mark.xdist_group("gloo"), pytest.mark.filterwarnings("ignore")]


def small() -> Any:
    layers = [torch.nn.Linear(64, 64) for _ in range(3)]
    return torch.nn.Sequential(*layers), (torch.ones(8, 64),), torch.nn.functional.mse_loss, torch.ones(8, 64)


@pytest.fixture(autouse=True)
def one_small_model(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    threads = torch.get_num_threads()
    monkeypatch.setattr(bench_profile, "MODELS", {"small": small})
    monkeypatch.setattr(bench_profile, "prepare", lambda: torch.set_num_threads(1))
    yield
    torch.set_num_threads(threads)


def test_a_line_for_each_pass(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench_profile.main(["--time-limit", "0"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(" | ")[:2] for line in lines[4:6]] == [
        ["| small", "training"],
        ["| small", "inference"],
    ]
    assert lines[-1].startswith("largest difference of two profiles: ")


@pytest.mark.parametrize(
    ("second", "plans", "code"), [(10.4, 1.04, 0), (10.6, 1.0, 1), (9.4, 1.0, 1), (10.0, 1.06, 1)]
)
def test_the_check_fails_above_five_per_cent(
    monkeypatch: pytest.MonkeyPatch, second: float, plans: float, code: int
) -> None:
    class Run:
        foreign, doubt = 0.0, ""

        def __init__(self, time: float) -> None:
            self.time_per_sample = time

    runs: Any = (Run(1.0), Run(plans))
    found = bench_profile.Repeated("small", True, 6, 10.0, second, 8.0, runs)
    monkeypatch.setattr(bench_profile, "measured", lambda *given: found)
    assert bench_profile.main(["--check"]) == code
    assert bench_profile.main([]) == 0
