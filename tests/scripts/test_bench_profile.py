"""The benchmark of profiles compares two of each model with a real step, and --check fails if they differ."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

torch = pytest.importorskip("torch", reason="profiles of torch's models need torch")
import bench_profile  # noqa: E402


@pytest.fixture(autouse=True)
def one_small_model(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    threads = torch.get_num_threads()
    small = [("small", torch.nn.Linear(64, 64), (torch.ones(8, 64),))]
    monkeypatch.setattr(bench_profile, "models", lambda: iter(small))
    yield
    torch.set_num_threads(threads)


def test_a_line_for_each_pass(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench_profile.main(["--time-limit", "0"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(" | ")[:2] for line in lines[2:4]] == [
        ["| small", "training"],
        ["| small", "inference"],
    ]
    assert lines[-1].startswith("largest difference of two profiles: ")


@pytest.mark.parametrize(("second", "code"), [(10.4, 0), (10.6, 1), (9.4, 1)])
def test_the_check_fails_above_five_per_cent(
    monkeypatch: pytest.MonkeyPatch, second: float, code: int
) -> None:
    monkeypatch.setattr(bench_profile, "_measured", lambda *given: (6, 10.0, second, 8.0))
    assert bench_profile.main(["--check"]) == code
    assert bench_profile.main([]) == 0
