"""A spec of layouts asks `plan` of every combination, a row each, and goes on; a bad one is refused."""

from __future__ import annotations

import csv
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import partitioner as pt
from partitioner.analysis.sweeps.asked import load_spec

CONFIG = {
    "model_type": "llama", "hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 2,
    "num_attention_heads": 2, "num_key_value_heads": 2, "vocab_size": 1000,
}  # fmt: skip
SPEC = """
[[layouts]]
config = "small.json"
gpus = [1, 2]
device = ["A100-80", "mine.json"]
global_batch = 4
sequence = 128
network = "10GB/s"
memory = ["40GB", 1e6]
time_limit = 60
"""
MINE = {"name": "mine", "memory_gb": 16, "bandwidth_gb_s": 500, "peak_tflops": {"bfloat16": 50}}


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    for name, content in (("small", CONFIG), ("mine", MINE)):
        (tmp_path / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    (path := tmp_path / "layouts.toml").write_text(SPEC, encoding="utf-8")
    return path


def swept(spec: Path, **more: Any) -> pt.SweepResult:
    with ThreadPoolExecutor(1) as executor:
        return pt.sweep(spec, executor=executor, warm_up=False, **more)


def test_rows_are_those_of_separate_questions(spec: Path, tmp_path: Path) -> None:
    found = swept(spec, results=tmp_path / "rows.csv", plans=tmp_path / "plans")
    assert repr(load_spec(spec)) == "<SweepSpec: 8 questions for layouts>"
    assert [row.pool for row in found.rows[::2]] == ["1 x A100-80", "1 x mine", "2 x A100-80", "2 x mine"]
    assert [row.status for row in found.rows[1::2]] == ["infeasible"] * 4
    first = found.rows[0]
    alone = pt.plan(
        CONFIG, gpus=1, device="A100-80", global_batch=4, sequence=128, network=1e10, memory=4e10,
        time_limit=60,
    )  # fmt: skip
    assert first.value == alone.best.seconds and first.bound == alone.bound
    assert first.figures["layout"] == alone.best.layout.name and first.figures["mfu"] == alone.best.mfu
    kept = json.loads((tmp_path / "plans" / first.plan).read_text(encoding="utf-8"))
    assert kept["layouts"][0]["seconds"] == first.value
    rows = list(csv.DictReader((tmp_path / "rows.csv").read_text(encoding="utf-8").splitlines()))
    assert float(rows[0]["tokens_per_second"]) == alone.best.tokens_per_second
    assert float(rows[0]["memory"]) == alone.best.memory and float(rows[0]["memory_option"]) == 4e10
    assert [row.devices for row in found.front("small", "layout")] == [1, 2]


def test_it_goes_on_where_it_ended(spec: Path, tmp_path: Path) -> None:
    """Rows of a smaller product are kept, also under other names of the fields that ask the same."""
    results, text = tmp_path / "rows.jsonl", spec.read_text(encoding="utf-8")
    spec.write_text(text.replace("[1, 2]", "1"), encoding="utf-8")
    assert swept(spec, results=results).before == 0
    spec.write_text(text.replace('"10GB/s"', "10e9"), encoding="utf-8")
    found = swept(spec, results=results)
    assert (found.before, found.total, found.complete) == (4, 8, True)
    assert swept(spec, results=results).before == 8


@pytest.mark.parametrize("width", [80, 160])
def test_the_table_has_what_varies(spec: Path, width: int) -> None:
    text = swept(spec).summary(width)
    assert max(map(len, text.splitlines())) <= width
    assert "memory=" in text and "global_batch" not in text and "TP1" in text
    assert "infeasible, " in text


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (
            "[[layouts]]",
            '[[workloads]]\nfile = "small.json"\n[[layouts]]',
            "workloads: must not be in",
        ),
        ('"small.json"', '"none*.json"', "layouts[0]: config = 'none*.json': no file has such a name"),
        ("config =", "file =", "layouts[0]: config: is missing"),
        ("gpus", "gpu", "layouts[0]: gpu: is not a field; these are config, gpus, device, global_batch"),
        ("[1, 2]", "[2, 0]", "layouts[0]: gpus = 0: must be an integer of at least 1"),
        ("[1, 2]", "[]", "layouts[0]: gpus = []: must not be empty"),
        ("gpus = [1, 2]", "", "layouts[0]: gpus = None: one of gpus and tokens_per_second must be given"),
        ("sequence = 128", "", "layouts[0]: sequence: is missing"),
        ('"10GB/s"', '"fast"', "layouts[0]: 'fast': must be a number of bytes"),
        ('"A100-80"', '"A1000"', "layouts[0]: device = 'A1000': must be one of"),
        ("time_limit = 60", "time_limit = -1", "layouts[0]: time_limit = -1: must be a positive number"),
        (
            "time_limit = 60",
            'dtype = "float8"',
            "layouts[0]: dtype = 'float8': device A100-80 has",
        ),
        ("time_limit = 60", 'optimizer = "adamant"', "layouts[0]: optimizer = 'adamant': must be"),
    ],
)
def test_a_bad_spec_is_refused(spec: Path, old: str, new: str, words: str) -> None:
    spec.write_text(SPEC.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(pt.PartitionerError) as failure:
        swept(spec)
    assert words in str(failure.value)


def test_pools_and_options_mean_nothing_to_layouts(spec: Path) -> None:
    with pytest.raises(pt.OptionError, match="layouts are given all they need in this file"):
        swept(spec, options={"objective": "latency"})
