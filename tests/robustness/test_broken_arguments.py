"""Whatever an entry point is given, it returns or raises a `PartitionerError`, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import partitioner as pt
from partitioner import PartitionerError
from tests.robustness.entry_points import Entry, broken_values, entries

pytest.importorskip("matplotlib").use("Agg")
pyplot = pytest.importorskip("matplotlib.pyplot")
SLOW = ("compare_methods", "split_operations", "load_pipedream", "certify")  # one call takes long


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Some of the values are names of files, which are then written; some calls open figures."""
    monkeypatch.chdir(tmp_path)
    yield
    pyplot.close("all")


def calls(entry: Entry, folder: Path) -> Iterator[tuple[str, Any]]:
    """Every argument with every broken value."""
    for name in entry.arguments():
        for value in broken_values(folder):
            yield name, value


def wrong(entry: Entry, folder: Path, share: int) -> list[str]:
    """What calls with one broken argument raised that is no `PartitionerError`; one of `share` is made."""
    found = []
    for i, (name, value) in enumerate(calls(entry, folder)):
        if i % share:
            continue
        try:
            entry.call(**{**entry.given, name: value})
        except PartitionerError:
            continue
        except Exception as error:
            found.append(f"{entry.name}({name}={value!r:.40}): {error!r:.100}")
    return found


def test_a_share_of_all_broken_calls(tmp_path: Path) -> None:
    found = [entry for entry in entries(tmp_path) if entry.name not in SLOW]
    assert len(found) > 40
    assert [words for entry in found for words in wrong(entry, tmp_path, 23)] == []


@pytest.mark.slow
def test_all_broken_calls(tmp_path: Path) -> None:
    found = entries(tmp_path)
    assert sum(len(list(calls(entry, tmp_path))) for entry in found) > 10_000
    assert [words for entry in found for words in wrong(entry, tmp_path, 1)] == []


def test_every_entry_accepts_what_it_is_given(tmp_path: Path) -> None:
    for entry in entries(tmp_path):
        if entry.name not in SLOW:
            entry.call(**entry.given)


PIPED = {"objective": "makespan", "schedule": "inference"}
PATHS = [pt.load, pt.load_plan, pt.load_timeline]


@pytest.mark.parametrize("reader", PATHS)
@pytest.mark.parametrize("path", [object(), 1, None, b"file"])
def test_a_path_that_is_no_path(reader: Callable[[Any], Any], path: object) -> None:
    with pytest.raises(pt.WorkloadError, match="must be a text or a path"):
        reader(path)


def line(n: int = 3) -> pt.Graph:
    return pt.Graph.from_arrays({"accelerator": [1.0] * n}, [(i, i + 1) for i in range(n - 1)], size=1.0)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"on_progress": 1}, "on_progress = 1: must be a function"),
        ({"objective": []}, r"objective = \[\]: must be one of throughput"),
        (
            {"objective": "batch", "microbatches": 10**19},
            "an integer of at least 1 and at most 1,000",
        ),
        (
            {"objective": "makespan", "schedule": "inference", "microbatches": 10**11},
            "must be at most 5,000,000",
        ),
        (
            {"objective": "makespan", "schedule": "inference", "microbatches": 2**31},
            "must be at most 5,000,000",
        ),
    ],
)
def test_what_a_machine_cannot_bear_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(pt.OptionError, match=words):
        pt.solve(line(), pt.Devices.accelerated(2), **options)


@pytest.mark.parametrize("most", [2**31, 10**15])
def test_more_subgraphs_than_nodes_are_as_many_as_nodes(most: int) -> None:
    devices = pt.Devices.accelerated(2)
    few = pt.solve(line(), devices, "latency", subgraphs_per_accelerator=3)
    many = pt.solve(line(), devices, "latency", subgraphs_per_accelerator=most)
    assert many.value == few.value == 3.0
    with pytest.raises(pt.OptionError, match="subgraphs_per_accelerator"):
        pt.solve(line(), devices, "latency", subgraphs_per_accelerator=2**63)


@pytest.mark.parametrize("name", ["limited_cpus", "replicas", "order", "subgraphs", "execution_order"])
@pytest.mark.parametrize("objective", ["throughput", "latency", "makespan"])
def test_a_part_of_a_solution_that_is_an_array_of_numbers(objective: str, name: str) -> None:
    with pytest.raises(PartitionerError, match=name.replace("_", ".")):
        pt.evaluate(
            line(), pt.Devices.accelerated(1), dict.fromkeys(range(3), "accelerator0"), objective,
            **{name: np.zeros((2, 2))},  # type: ignore[arg-type]
        )  # fmt: skip


def test_a_placer_of_no_parts() -> None:
    with pytest.raises(pt.OptionError, match="priority = <object"):
        pt.Placer(priority=object())  # type: ignore[arg-type]


def test_a_workload_of_nothing() -> None:
    with pytest.raises(pt.WorkloadError, match="graph: int: must be"):
        pt.solve(1, pt.Devices.accelerated(2))  # type: ignore[arg-type]
    with pytest.raises(pt.WorkloadError, match=r"devices: int: must be a partitioner\.Devices"):
        pt.solve(line(), 2)  # type: ignore[arg-type]
