"""Each writer says what the plan says: read by the rules of its tool, restated here, it is the plan again."""

from __future__ import annotations

import csv
import io
import json
import re
import shlex
import sys
from bisect import bisect_right
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import partitioner as pt
from partitioner import DeviceKind, Devices, ExportError, OptionError, Plan, Workload, WorkloadError, export
from partitioner.cli.command_line import main
from partitioner.exports.writers import WRITERS
from partitioner.formats.torch_schedule import load_torch_schedule
from partitioner.workload.graph import Extras
from tests.exports.models import cuts, decoder, gpus, line, numbered, planned

CUTS = [(5,), (1, 4), (3, 2), (2, 1, 2), (1, 1, 3), (3, 1, 3), (2, 9, 4), (4, 4, 4, 3)]


def text(workload: Workload, plan: Plan, to: str) -> str:
    content = export(workload, plan, to)
    assert isinstance(content, str) and content.endswith("\n")
    return content


def case(counts: tuple[int, ...]) -> tuple[Workload, Plan]:
    """A decoder cut into stages of so many modules; the first module embeds, the last two are the head."""
    workload = decoder(sum(counts) - 3, len(counts))
    return workload, cuts(workload, *counts)


def layers_of(counts: tuple[int, ...]) -> list[int]:
    """How many layers each stage has; the norm and the head are in the last one."""
    found = list(counts)
    found[0] -= 1
    found[-1] -= 2
    return found


def pp_indices(layers: int, rank: int, ranks: int, partition: str) -> tuple[int, int]:
    """The first layer of a rank and the one after its last, as vLLM and SGLang read their variable."""
    counts = [int(part) for part in partition.split(",")]
    if len(counts) != ranks or sum(counts) != layers:
        raise ValueError(partition)
    return sum(counts[:rank]), sum(counts[: rank + 1])


@pytest.mark.parametrize("counts", CUTS)
@pytest.mark.parametrize(("to", "variable"), [("vllm", "VLLM"), ("sglang", "SGLANG")])
def test_servers_read_the_layers_of_each_rank(counts: tuple[int, ...], to: str, variable: str) -> None:
    name, partition = text(*case(counts), to).strip().split("=")
    assert name == f"{variable}_PP_LAYER_PARTITION"
    total, expected = sum(counts) - 3, layers_of(counts)
    ends = [pp_indices(total, rank, len(counts), partition) for rank in range(len(counts))]
    assert [stop - start for start, stop in ends] == expected
    assert all(one[1] == other[0] for one, other in pairwise(ends))


def unrolled(layout: str) -> list[str]:
    """The letters of each stage of a Megatron layout."""
    return re.sub(r"(.)\*(\d+)", lambda found: found[1] * int(found[2]), layout).split("|")


@pytest.mark.parametrize("counts", CUTS)
def test_megatron_layouts(counts: tuple[int, ...]) -> None:
    fields = json.loads(text(*case(counts), "megatron"))
    stages = unrolled(fields["pipeline_model_parallel_layout"])
    assert [stage.count("t") for stage in stages] == layers_of(counts)
    assert "".join(stages) == "E" + "t" * fields["num_layers"] + "L"
    assert fields["pipeline_model_parallel_size"] == len(counts)
    known = "num_layers", "pipeline_model_parallel_size", "pipeline_model_parallel_layout"
    assert tuple(fields) == known  # what TransformerConfig takes, and nothing that a layout forbids


def test_megatron_layouts_of_virtual_stages_go_round_the_devices() -> None:
    workload = decoder(5, 2)
    plan = cuts(workload, 2, 1, 2, 3, devices=["gpu1", "gpu0"] * 2)
    fields = json.loads(text(workload, plan, "megatron"))
    assert fields["pipeline_model_parallel_layout"] == "Et|t|t*2|tL"
    assert fields["virtual_pipeline_model_parallel_size"] == 2


def test_megatron_knows_layers_that_predict_several_tokens() -> None:
    names = ["embed", "layers.0", "layers.1", "norm", "mtp.0", "head"]
    workload = line(names, gpus(2))
    fields = json.loads(text(workload, cuts(workload, 2, 4), "megatron"))
    assert fields["pipeline_model_parallel_layout"] == "Et|tmL" and fields["mtp_num_layers"] == 1


@pytest.mark.parametrize("counts", CUTS)
def test_deepspeed_bounds(counts: tuple[int, ...]) -> None:
    workload, plan = case(counts)
    fields = json.loads(text(workload, plan, "deepspeed"))
    parts = fields["parts"]
    assert [stop - start for start, stop in pairwise(parts)] == list(counts)
    assert fields["layers"] == list(workload.graph.layer_labels) and parts[-1] == len(fields["layers"])


class _PipelineModule:
    """DeepSpeed's module as far as an override of the bounds sees it."""

    def __init__(self, stages: int, layers: int, rank: int) -> None:
        self.num_stages, self._layer_specs, self.global_rank = stages, [None] * layers, rank
        self._topo = SimpleNamespace(get_coord=lambda rank: SimpleNamespace(pipe=rank))
        self._partition_layers()

    def _partition_layers(self) -> None:
        raise NotImplementedError

    def _set_bounds(self, start: int, stop: int) -> None:
        self.bounds = range(start, stop)


@pytest.mark.parametrize("counts", CUTS)
def test_deepspeed_comes_with_the_subclass_that_has_the_bounds(
    counts: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    fields = json.loads(text(*case(counts), "deepspeed"))
    package, pipe = ModuleType("deepspeed"), ModuleType("deepspeed.pipe")
    vars(pipe)["PipelineModule"] = _PipelineModule
    monkeypatch.setitem(sys.modules, "deepspeed", package)
    monkeypatch.setitem(sys.modules, "deepspeed.pipe", pipe)
    found: dict[str, Any] = {}
    exec(fields["subclass"], found)
    stages = len(counts)
    made = [found["PlannedPipelineModule"](stages, sum(counts), rank) for rank in range(stages)]
    assert [len(one.bounds) for one in made] == list(counts)
    assert [i for one in made for i in one.bounds] == list(range(sum(counts)))
    with pytest.raises(ValueError, match=f"the plan has {sum(counts)} layers in {stages} stages, the module"):
        found["PlannedPipelineModule"](stages, sum(counts) + 1, 0)


@pytest.mark.parametrize("counts", CUTS)
def test_torchtitan_parts_name_every_module_once(counts: tuple[int, ...]) -> None:
    workload, plan = case(counts)
    fields = json.loads(text(workload, plan, "torchtitan"))
    parts = fields["module_fqns_per_model_part"]
    assert [len(part) for part in parts] == list(counts)
    assert [name for part in parts for name in part] == list(workload.graph.layer_labels)
    assert fields["pipeline_parallel_degree"] == len(counts)


@pytest.mark.parametrize(
    ("homes", "schedule", "expected"),
    [
        ([0, 1], None, "1F1B"),
        ([0, 1], "gpipe", "GPipe"),
        ([0, 1, 0, 1], None, "Interleaved1F1B"),
        ([0, 1, 0, 1], "zb_h1", "InterleavedZeroBubble"),
        ([0, 1, 1, 0], None, "ZBVZeroBubble"),
        ([0, 1, 2, 2, 1, 0], "dualpipev", "DualPipeV"),
        ([0, 1, 1, 0], "interleaved_1f1b", None),
        ([0, 1, 0, 1], "zbv", None),
        ([0, 1], "zbv", None),
    ],
)
def test_torchtitan_gets_the_schedule_that_runs_the_stages(
    homes: list[int], schedule: str | None, expected: str | None
) -> None:
    workload = decoder(len(homes) - 2, 3)
    counts = [1] * (len(homes) - 1) + [2]
    names = [f"gpu{i}" for i in homes]
    options = {} if schedule is None else {"schedule": schedule, "microbatches": 4}
    # stages that are neighbours on one device are two stages of a V
    plan = numbered(workload, counts, names, **options)
    if expected is None:
        with pytest.raises(ExportError, match=f"schedule: {schedule}: needs stage"):
            export(workload, plan, "torchtitan")
        return
    fields = json.loads(text(workload, plan, "torchtitan"))
    assert fields["pipeline_parallel_schedule"] == expected
    assert [len(part) for part in fields["module_fqns_per_model_part"]] == counts


def test_torchtitan_knows_no_deeper_modules() -> None:
    workload = line(["model.embed", "model.layers.0"], gpus(2))
    with pytest.raises(ExportError, match=r"module model\.layers\.0: must be a child of the model"):
        export(workload, cuts(workload, 1, 1), "torchtitan")


@pytest.mark.parametrize("homes", [[0, 1, 2], [0, 1, 0], [1, 0, 1], [0, 1, 2, 0, 2, 1]])
def test_torch_split_points_and_ranks(homes: list[int], tmp_path: Path) -> None:
    """Any map of stages to ranks, with the schedule of the plan where it has one for that map."""
    workload = decoder(len(homes) - 2, 3, training=True)
    counts = [1] * (len(homes) - 1) + [2]
    plan = cuts(workload, *counts, devices=[f"gpu{i}" for i in homes], schedule="gpipe", microbatches=4)
    fields = json.loads(text(workload, plan, "torch"))
    first = dict.fromkeys(homes)
    assert fields["stage_to_rank"] == [list(first).index(i) for i in homes]
    assert fields["ranks"] == [f"gpu{i}" for i in first]
    assert fields["split_points"] == [stage[0] for stage in fields["stages"][1:]]
    path = tmp_path / "schedule.csv"
    path.write_text(fields["schedule_csv"], encoding="utf-8")
    table = load_torch_schedule(path, fields["ranks"])
    assert table.microbatches == 4 and len(table.stage) == 2 * 4 * len(homes)
    found = {(int(s), table.devices[d]) for s, d in zip(table.stage, table.row, strict=True)}
    assert found == {(s, f"gpu{i}") for s, i in enumerate(homes)}


def test_without_microbatches_there_is_no_schedule_for_torch() -> None:
    for training in (False, True):
        workload = decoder(2, 2, training=training)
        assert "schedule_csv" not in json.loads(text(workload, cuts(workload, 2, 3), "torch"))
    workload = decoder(2, 2)
    plan = cuts(workload, 2, 3, microbatches=2, schedule="inference")
    assert "schedule_csv" not in json.loads(text(workload, plan, "torch"))


def host_and_gpus(count: int = 2) -> Devices:
    return Devices((DeviceKind("cpu", 1, 64.0, pays_communication=False), DeviceKind("gpu", count, 16.0)))


def test_accelerate_takes_free_splits_and_the_memory_of_each_device() -> None:
    workload = line(["a", "b", "c", "d"], host_and_gpus())
    plan = planned(workload, {"a": "gpu1", "b": "gpu0", "c": "gpu1", "d": "cpu0"})
    fields = json.loads(text(workload, plan, "accelerate"))
    assert fields["device_map"] == {"a": 1, "b": 0, "c": 1, "d": "cpu"}
    assert fields["max_memory"] == {"0": 16, "1": 16, "cpu": 64}
    unlimited = decoder(1, 2)
    assert json.loads(text(unlimited, cuts(unlimited, 2, 2), "accelerate"))["max_memory"] == {}


def llama_devices(arguments: str, layers: int) -> list[str]:
    """The device of every layer, and of the output as one more, by llama.cpp's rule."""
    words = shlex.split(arguments)
    given = dict(zip(words[::2], words[1::2], strict=True))
    own = int(given["--n-gpu-layers"])
    start = max(layers + 1 - own, 0)
    shares = [float(part) for part in given.get("--tensor-split", "1").split(",")]
    ends = [sum(shares[: i + 1]) / sum(shares) for i in range(len(shares))]
    found = [
        "CPU" if i < start else f"CUDA{bisect_right(ends, (i - start) / min(own, layers + 1))}"
        for i in range(layers + 1)
    ]
    tensors = [f"blk.{i}.attn_q.weight" for i in range(layers)] + ["output.weight"]
    for pattern, _, device in (each.rpartition("=") for each in _split(given.get("--override-tensor", ""))):
        for i, tensor in enumerate(tensors):
            found[i] = device if re.search(pattern, tensor) else found[i]
    return found


def _split(patterns: str) -> list[str]:
    return [each for each in patterns.split(",") if each]


@pytest.mark.parametrize(
    "homes",
    [
        ["gpu0"] * 5,
        ["gpu0", "gpu0", "gpu1", "gpu1", "gpu1"],
        ["cpu0", "cpu0", "gpu0", "gpu1", "gpu1"],
        ["cpu0"] * 5,
        ["gpu1", "gpu1", "gpu1", "gpu0", "gpu0"],
        ["gpu0", "gpu1", "gpu0", "gpu1", "cpu0"],
        ["gpu0", "gpu0", "gpu2", "gpu2", "gpu2"],
    ],
)
def test_llama_cpp_puts_each_layer_on_its_device(homes: list[str]) -> None:
    names = ["embed", *(f"blk.{i}" for i in range(4)), "norm", "head"]
    workload = line(names, host_and_gpus(3))
    plan = planned(workload, dict(zip(names, [homes[0], *homes, homes[-1]], strict=True)))
    arguments = text(workload, plan, "llama.cpp")
    assert ("--override-tensor" in arguments) == (
        homes in ([*["gpu1"] * 3, *["gpu0"] * 2], [*["gpu0", "gpu1"] * 2, "cpu0"])
    )
    expected = ["CPU" if home == "cpu0" else f"CUDA{home[-1]}" for home in homes]
    assert llama_devices(arguments, 4) == expected


def test_boundaries_name_the_tensors_that_cross() -> None:
    workload = line(["a", "b", "c", "d"], gpus(3), training=True, skips=[(0, 3)])
    stages = json.loads(text(workload, cuts(workload, 1, 2, 1), "onnx"))["stages"]
    assert [stage["inputs"] for stage in stages] == [[], ["node 0"], ["node 0", "node 2"]]
    assert [stage["outputs"] for stage in stages] == [["node 0"], ["node 2"], []]
    assert [stage["modules"] for stage in stages] == [["a"], ["b", "c"], ["d"]]


def test_tables_of_nodes_have_all_nodes_of_any_plan() -> None:
    workload = decoder(2, 2, training=True)
    plan = cuts(workload, 2, 3)
    rows = list(csv.DictReader(io.StringIO(text(workload, plan, "nodes"))))
    assert {int(row["id"]): row["device"] for row in rows} == plan.placement
    assert [row["module"] for row in rows[:2]] == ["embed", "layers.0"] and rows[0]["name"] == "node 0"
    assert {(row["device"], row["stage"]) for row in rows} == {("gpu0", "1"), ("gpu1", "2")}
    assert [row["backward"] for row in rows] == ["0"] * 5 + ["1"] * 5
    free = planned(
        workload, {name: f"gpu{i % 2}" for i, name in enumerate(map(str, workload.graph.layer_labels))}
    )
    assert {row["stage"] for row in csv.DictReader(io.StringIO(text(workload, free, "nodes")))} == {""}


def test_graphviz_has_a_box_for_each_device() -> None:
    graph = pt.Graph.from_arrays({"gpu": [1.0] * 2}, [(0, 1)], names=['a "b" \\', "c\nd"])
    workload = Workload(graph, gpus(2))
    plan = pt.solve(graph, workload.devices, constraints=pt.Constraints(stages=2))
    dot = text(workload, plan, "graphviz")
    assert dot.count("subgraph cluster_") == 2 and "n0 -> n1;" in dot
    assert r'label="a \"b\" \\"' in dot and r'label="c\nd"' in dot
    assert dot.count("{") == dot.count("}")


def test_boundaries_may_cut_a_module() -> None:
    workload = line(["a", "b", "b", "c"], gpus(2))
    nodes: dict[int | str, str] = {i: f"gpu{int(i > 1)}" for i in range(4)}
    plan = replace(cuts(workload, 1, 1, 1), placement=nodes, stages=("gpu0", "gpu1"))
    stages = json.loads(text(workload, plan, "onnx"))["stages"]
    assert [stage["modules"] for stage in stages] == [["a", "b"], ["b", "c"]]
    assert [stage["nodes"] for stage in stages] == [["node 0", "node 1"], ["node 2", "node 3"]]
    assert [stage["inputs"] for stage in stages] == [[], ["node 1"]]


REFUSED: tuple[tuple[list[str], str], ...] = (
    (["embed", "norm", "head"], "modules: no name has a number"),
    (["embed", "layers.0", "pool", "layers.1", "head"], "module pool: must be layers.1"),
    (["embed", "layers.0", "layers.2", "head"], "module layers.2: must be layers.1"),
    (
        ["conv", "layer1.0", "layer1.1", "layer2.0", "layer2.1", "layer2.2", "fc"],
        "modules layer1.*: is a list of layers beside layer2.*: the tool runs models of one list",
    ),
    (
        [
            "stem",
            "a.dense1.layer1",
            "a.dense1.layer2",
            "a.dense2.layer1",
            "a.dense2.layer2",
            "a.dense2.layer3",
        ],
        "modules a.dense1.layer*: is a list of layers beside a.dense2.layer*",
    ),
    (
        ["encoder.block.0", "decoder.embed", "decoder.block.0", "decoder.block.1", "head"],
        "modules encoder.block.*: is a list of layers beside decoder.block.*",
    ),
)


@pytest.mark.parametrize(("names", "message"), REFUSED)
@pytest.mark.parametrize("to", ["megatron", "vllm", "sglang", "llama.cpp"])
def test_models_that_are_no_line_of_layers_are_refused(names: list[str], message: str, to: str) -> None:
    workload = line(names, gpus(1))
    with pytest.raises(ExportError, match=re.escape(message)):
        export(workload, cuts(workload, len(names)), to)


def with_operators(names: list[str], first: str) -> Workload:
    """A line of modules whose nodes say which operators they call, as those of a captured model do."""
    workload = line(names, gpus(2))
    nodes = [{"operators": [first if i == 0 else f"linear_{i}"]} for i in range(len(names))]
    return replace(workload, graph=replace(workload.graph, extras=Extras(nodes=nodes)))


@pytest.mark.parametrize("to", ["vllm", "sglang", "llama.cpp"])
def test_servers_take_models_of_tokens_only(to: str) -> None:
    names = ["patches", "encoder.layers.0", "encoder.layers.1", "head.0", "head.2"]
    images, tokens = with_operators(names, "conv2d"), with_operators(names, "embedding_1")
    with pytest.raises(ExportError, match="model: calls no operator embedding: the tool runs language"):
        export(images, cuts(images, 2, 1, 2), to)
    assert export(tokens, cuts(tokens, 2, 3), to)
    silent = replace(tokens, graph=replace(tokens.graph, extras=Extras()))
    assert export(silent, cuts(silent, 2, 3), to)


def test_ends_that_are_cut_are_refused() -> None:
    names = ["embed", "positions", "layers.0", "layers.1", "norm", "head"]
    workload = line(names, gpus(2))
    with pytest.raises(
        ExportError, match="module positions: is in stage 1: what comes before the layers must"
    ):
        export(workload, cuts(workload, 1, 5), "vllm")
    with pytest.raises(ExportError, match="module norm: is in stage 0: what comes after the layers"):
        export(workload, cuts(workload, 5, 1), "vllm")


def test_layers_that_share_weights_are_refused_and_ends_that_do_are_not() -> None:
    inner, ends = decoder(2, 2, tied=(1, 2)), decoder(2, 2, tied=(0, 4))
    assert export(ends, cuts(ends, 2, 3), "vllm") == "VLLM_PP_LAYER_PARTITION=1,1\n"
    with pytest.raises(ExportError, match="parameter weight: is on gpu0, gpu1: only an embedding and a head"):
        export(inner, cuts(inner, 2, 3), "vllm")
    assert "parts" in str(export(inner, cuts(inner, 2, 3), "deepspeed"))


def test_a_plan_of_another_workload_is_refused() -> None:
    workload, other = decoder(2, 2), decoder(3, 2)
    with pytest.raises(WorkloadError, match="made for another workload"):
        export(other, cuts(workload, 2, 3), "nodes")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"to": "megatrom"}, "to = 'megatrom': must be one of .* did you mean 'megatron'"),
        ({"workload": None}, "workload: NoneType: must be a partitioner.Workload"),
        ({"plan": {}}, "plan: dict: must be a partitioner.Plan"),
    ],
)
def test_broken_arguments_are_named(arguments: dict[str, Any], message: str) -> None:
    workload = decoder(2, 2)
    given: dict[str, Any] = {"workload": workload, "plan": cuts(workload, 2, 3), "to": "nodes"}
    with pytest.raises((OptionError, WorkloadError), match=message):
        export(**given | arguments)


def test_the_command_line_prints_or_writes(
    workload_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan, out = tmp_path / "plan.json", tmp_path / "nodes.csv"
    assert main(["solve", str(workload_file), "--output", str(plan)]) == 0
    capsys.readouterr()
    assert main(["export", str(workload_file), str(plan), "--to", "nodes"]) == 0
    printed = capsys.readouterr().out
    assert printed.splitlines()[0] == "id,name,module,backward,stage,device"
    assert main(["export", str(workload_file), str(plan), "--to", "nodes", "--output", str(out)]) == 0
    assert out.read_text(encoding="utf-8") == printed and capsys.readouterr().out == ""
    assert main(["export", str(workload_file), str(plan), "--to", "word"]) == 2
    assert "to = 'word'" in capsys.readouterr().err
    assert main(["solve", str(workload_file), "--output", str(tmp_path / "other.csv")]) == 0
    assert (tmp_path / "other.csv").read_text(encoding="utf-8") == printed


def test_bytes_are_not_printed(
    workload_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from partitioner.extensions import Writer, registered

    plan = tmp_path / "plan.json"
    assert main(["solve", str(workload_file), "--output", str(plan)]) == 0
    with registered(Writer("raw", (".raw",), lambda plan, workload: b"raw")):
        assert main(["export", str(workload_file), str(plan), "--to", "raw"]) == 2
        assert "--to raw writes bytes: --output must name a file" in capsys.readouterr().err


def test_every_writer_is_on_the_page() -> None:
    page = (Path(__file__).parents[2] / "docs" / "exports.md").read_text(encoding="utf-8")
    assert [name for name in WRITERS.own if f"`{name}`" not in page] == []
