"""Whatever a file holds, it ends in a plan or in a PartitionerError, never in another exception."""

from __future__ import annotations

import copy
import json
import random
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from partitioner import (
    ContradictionError,
    PartitionerError,
    Workload,
    evaluate,
    load,
    load_placement,
    load_plan,
    solve,
)
from tests.instances import document, write

FEW = settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
MANY = settings(FEW, max_examples=150)
PATIENCE = 20  # seconds for a dozen nodes: who needs more than a fraction of one is caught in a loop
NAMES = ("id", "name", "supportedOnFpga", "cpuLatency", "fpgaLatency", "isBackwardNode", "colorClass",
         "layerId", "size", "sourceId", "destId", "cost", "maxSizePerFPGA", "maxFPGAs", "maxCPUs",
         "nodes", "edges")  # fmt: skip
ODD: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 0.5, -0.5, 1e-320, 1e18, 1e308, 10**19, 10**400, 2**63),
    *("", "1", "accelerator", "accelerator0", "\ud800", "🧠", "\x00", [], {}, [[]], [1, 2], {"id": 1}),
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=6),
    max_leaves=12,
)
AMOUNT = st.sampled_from([0, 0.0, 0.5, 1, 3.5, 1e9]) | st.floats() | JSON
ID = st.integers(0, 4) | st.sampled_from(["a", "1"])
NODE = st.fixed_dictionaries(
    {
        "id": ID,
        "supportedOnFpga": st.sampled_from([0, 1, True]),
        "cpuLatency": AMOUNT,
        "fpgaLatency": AMOUNT,
        "isBackwardNode": st.sampled_from([0, 0, 1]),
    },
    optional={"colorClass": ID, "layerId": ID, "size": AMOUNT, "name": st.text(max_size=3), "more": JSON},
)
EDGE = st.fixed_dictionaries({"sourceId": ID, "destId": ID, "cost": AMOUNT})
WORKLOAD = st.fixed_dictionaries(
    {
        "maxSizePerFPGA": AMOUNT,
        "maxFPGAs": st.integers(-1, 4) | JSON,
        "maxCPUs": st.integers(0, 2),
        "nodes": st.lists(NODE, max_size=5, unique_by=lambda node: str(node["id"])),
        "edges": st.lists(EDGE, max_size=5),
    }
)


def outcome_of(call: Callable[[], object]) -> str:
    """How a call ended; anything but a result or an error for the user escapes and fails the test."""
    try:
        call()
    except ContradictionError:  # a defect of the package, whatever the input
        raise
    except PartitionerError as error:
        assert str(error).strip()
        return type(error).__name__
    return "done"


def load_and_solve(path: Path) -> None:
    """Read a workload and split it; whatever is read can be."""
    workload = load(path)
    assert isinstance(workload, Workload)
    if len(workload.graph) <= 12:
        plan = solve(workload.graph, workload.devices, method="dp", time_limit=PATIENCE)
        assert plan.stop_reason == "optimal"
        assert plan.bound <= plan.value * (1 + 1e-9)
        assert "NaN" not in plan.to_json() and "Infinity" not in plan.to_json()
        assert plan.summary(80)


@MANY
@given(JSON)
def test_arbitrary_json_is_refused_or_solved(tmp_path: Path, content: object) -> None:
    outcome_of(lambda: load_and_solve(write(tmp_path, content)))


@FEW
@given(WORKLOAD)
def test_workloads_with_odd_values_are_refused_or_solved(tmp_path: Path, content: object) -> None:
    outcome_of(lambda: load_and_solve(write(tmp_path, content)))


@pytest.mark.slow
@MANY
@given(WORKLOAD)
def test_many_workloads_with_odd_values_are_refused_or_solved(tmp_path: Path, content: object) -> None:
    outcome_of(lambda: load_and_solve(write(tmp_path, content)))


@MANY
@given(st.binary(max_size=60))
def test_arbitrary_bytes_are_refused(tmp_path: Path, content: bytes) -> None:
    assert outcome_of(lambda: load(write(tmp_path, content))) == "WorkloadError"


@pytest.mark.parametrize(
    ("seed", "cases"),
    [(2, 100), *(pytest.param(*case, marks=pytest.mark.slow) for case in ((2, 400), (1, 3000)))],
)
def test_mutated_workloads_are_refused_or_solved(tmp_path: Path, seed: int, cases: int) -> None:
    """Both happen often."""
    counts = run_mutants(tmp_path, seed, cases, [document(), small_document()], load_and_solve)
    assert counts["done"] > cases / 8
    assert counts["WorkloadError"] > cases / 3


@pytest.mark.parametrize("cases", [120, pytest.param(600, marks=pytest.mark.slow)])
def test_mutated_plans_are_read_or_refused(tmp_path: Path, workload_file: Path, cases: int) -> None:
    """A plan file that was tampered with is evaluated and shown, or refused."""
    workload = load(workload_file)
    plan = json.loads(solve(workload.graph, workload.devices).to_json())

    def read(path: Path) -> None:
        placement = load_placement(path, workload.graph, workload.devices)
        evaluate(workload.graph, workload.devices, placement)
        again = load_plan(path)
        assert again.summary(80)
        again.save(path)
        assert load_plan(path) == again

    counts = run_mutants(tmp_path, 3, cases, [plan], read)
    assert counts["done"] > cases / 10
    assert counts["WorkloadError"] > cases / 3


def test_mutated_splits_are_read_or_refused(tmp_path: Path, workload_file: Path) -> None:
    """A split file that was tampered with is evaluated or refused."""
    workload = load(workload_file)
    split = {"fpgas": [{"nodes": [1, 6, 3]}, {"nodes": [2, 5, 4]}], "cpus": [{"nodes": []}]}

    def read(path: Path) -> None:
        placement = load_placement(path, workload.graph, workload.devices)
        evaluate(workload.graph, workload.devices, placement, "gpipe")

    counts = run_mutants(tmp_path, 4, 600, [split], read)
    assert counts["done"] > 20
    assert counts["WorkloadError"] > 200


def run_mutants(
    folder: Path, seed: int, cases: int, originals: list[Any], read: Callable[[Path], None]
) -> Counter[str]:
    """How `cases` mutants of the originals end."""
    rng = random.Random(seed)
    counts: Counter[str] = Counter()
    for case in range(cases):
        path = write(folder, mutant(rng, rng.choice(originals)), "mutant.json")
        try:
            counts[outcome_of(lambda path=path: read(path))] += 1  # type: ignore[misc]
        except Exception as error:
            raise AssertionError(f"seed {seed}, case {case}: {path.read_bytes()!r}") from error
    return counts


def small_document() -> dict[str, Any]:
    """Two nodes that do not fit one device, and hardly more than the fields that a file must have."""
    nodes = [
        {
            "id": node,
            "supportedOnFpga": True,
            "cpuLatency": 5,
            "fpgaLatency": 1,
            "isBackwardNode": False,
            "size": 6,
        }
        for node in ("a", "b")
    ]
    edges = [{"sourceId": "a", "destId": "b", "cost": 0.25}]
    return {"maxSizePerFPGA": 10, "maxFPGAs": 2, "maxCPUs": 0, "nodes": nodes, "edges": edges}


def mutant(rng: random.Random, original: Any) -> bytes:
    """The document with one or two of its values changed, or its text damaged."""
    content = copy.deepcopy(original)
    for _ in range(rng.choice((1, 1, 2))):
        rng.choice(MUTATIONS)(rng, content)
    text = json.dumps(content)
    if rng.random() < 0.3:
        text = rng.choice(TEXT_MUTATIONS)(rng, text)
    data = text.encode("utf-8", "surrogatepass")
    return _damaged(rng, data) if rng.random() < 0.05 else data


def _containers(content: Any) -> list[Any]:
    found = [content] if isinstance(content, dict | list) and content else []
    for inner in content.values() if isinstance(content, dict) else content:
        found += _containers(inner) if isinstance(inner, dict | list) else []
    return found


def _somewhere(rng: random.Random, content: Any) -> tuple[Any, Any]:
    """A container of the document and a key of it."""
    container = rng.choice(_containers(content) or [{"": 0}])
    return container, rng.choice(list(container) if isinstance(container, dict) else range(len(container)))


def _delete(rng: random.Random, content: Any) -> None:
    container, key = _somewhere(rng, content)
    del container[key]


def _rename(rng: random.Random, content: Any) -> None:
    objects = [c for c in _containers(content) if isinstance(c, dict)] or [{"": 0}]
    record = rng.choice(objects)
    key = rng.choice(list(record))
    names = (key.upper(), key.lower(), key + "s", key[:-1], "_" + key, rng.choice(NAMES), "extra")
    record[rng.choice(names)] = record.pop(key)


def _replace(rng: random.Random, content: Any) -> None:
    container, key = _somewhere(rng, content)
    container[key] = copy.deepcopy(rng.choice(ODD))


def _nudge(rng: random.Random, content: Any) -> None:
    """Change a number to another that is as good."""
    container, key = _somewhere(rng, content)
    if isinstance(container[key], int | float) and abs(container[key]) < 1e9:
        container[key] = rng.choice((0, 1, 2, 3, 4, 5, 6, container[key] * 1.5, container[key] + 1, 1e6))


def _duplicate(rng: random.Random, content: Any) -> None:
    lists = [c for c in _containers(content) if isinstance(c, list)] or [[0]]
    chosen = rng.choice(lists)
    chosen.insert(rng.randrange(len(chosen) + 1), copy.deepcopy(rng.choice(chosen)))


def _swap(rng: random.Random, content: Any) -> None:
    """Exchange two values, wherever they are."""
    (one, key), (other, place) = _somewhere(rng, content), _somewhere(rng, content)
    first, second = copy.deepcopy(one[key]), copy.deepcopy(other[place])
    one[key], other[place] = second, first


def _wrap(rng: random.Random, content: Any) -> None:
    container, key = _somewhere(rng, content)
    for _ in range(rng.choice((1, 2, 40))):
        container[key] = rng.choice(([container[key]], {"id": container[key]}))


def _truncated(rng: random.Random, text: str) -> str:
    return text[: rng.randrange(len(text))]


def _another_number(rng: random.Random, text: str) -> str:
    numbers = list(re.finditer(r"-?\d+(\.\d+)?", text))
    odd = (
        "NaN",
        "Infinity",
        "-Infinity",
        "1e999",
        "-1e999",
        "1e308",
        "9" * 5000,
        "9" * 30,
        "-0",
        "-0.0",
        "1E-400",
    )
    return _cut_in(rng.choice(numbers), rng.choice(odd), text) if numbers else text


def _key_twice(rng: random.Random, text: str) -> str:
    entries = list(re.finditer(r'"\w+": [^,{}\[\]]+', text))
    chosen = rng.choice(entries) if entries else None
    return _cut_in(chosen, f"{chosen.group()}, {chosen.group()}", text) if chosen else text


def _nested(rng: random.Random, text: str) -> str:
    numbers = list(re.finditer(r"-?\d+(\.\d+)?", text))
    depth = rng.choice((50, *range(900, 1000), 100_000))
    return _cut_in(rng.choice(numbers), "[" * depth + "]" * depth, text) if numbers else text


def _typo(rng: random.Random, text: str) -> str:
    place = rng.randrange(len(text))
    return text[:place] + rng.choice('{}[]",:0 x\n\x00é') + text[place + rng.randrange(2) :]


def _cut_in(place: re.Match[str], new: str, text: str) -> str:
    return text[: place.start()] + new + text[place.end() :]


def _damaged(rng: random.Random, data: bytes) -> bytes:
    place = rng.randrange(len(data))
    return data[:place] + rng.randbytes(rng.randrange(1, 4)) + data[place:]


MUTATIONS = (_delete, _rename, _replace, _replace, _nudge, _nudge, _nudge, _duplicate, _swap, _wrap)
TEXT_MUTATIONS = (_truncated, _another_number, _another_number, _key_twice, _nested, _typo)
