"""What is written is read by the tools themselves, where they are installed."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from partitioner import Plan, Workload, export
from tests.exports.models import cuts, decoder, gpus, line
from tests.exports.test_writers import CUTS, case, layers_of
from tests.exports.torch_runtime import torch_runtime

pytestmark = pytest.mark.filterwarnings("ignore")


def package(name: str, remedy: str) -> Any:
    """A module of a package; the test is skipped where it is missing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip(name, reason=f"{name} is missing: {remedy}", exc_type=ImportError)


def fields_of(workload: Workload, plan: Plan, to: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(export(workload, plan, to))
    return found


def model_of(names: list[str], torch: Any) -> Any:
    """A model of linear modules that runs the modules of these names that it has, in order."""
    module = type("Line", (torch.nn.Module,), {"forward": _forward})()
    for name in names:
        part, _, item = name.partition(".")
        if not item:
            setattr(module, part, torch.nn.Linear(4, 4))
        else:
            if not hasattr(module, part):
                setattr(module, part, torch.nn.ModuleDict() if not item.isdigit() else torch.nn.ModuleList())
            getattr(module, part).append(torch.nn.Linear(4, 4))
    return module


def _forward(self: Any, x: Any) -> Any:
    for child in self.children():
        for each in child if hasattr(child, "append") else [child]:
            x = each(x)
    return x


def names_of(workload: Workload) -> list[str]:
    return [str(label) for label in workload.graph.layer_labels]


@pytest.mark.slow
@pytest.mark.parametrize("counts", CUTS)
def test_megatron_core_reads_the_layout(counts: tuple[int, ...]) -> None:
    place = "megatron.core.transformer.pipeline_parallel_layer_layout"
    found = fields_of(*case(counts), "megatron")
    kind = package(place, "pip install megatron-core").PipelineParallelLayerLayout
    layout = kind(found["pipeline_model_parallel_layout"], found["pipeline_model_parallel_size"])
    layout.validate_layer_layout(found["num_layers"], mtp_num_layers=0)
    read = [stage.count(type(stage[0]).decoder) if stage else 0 for (stage,) in layout.layout]
    assert read == layers_of(counts)


@pytest.mark.slow
@pytest.mark.parametrize("counts", CUTS)
def test_the_fields_for_megatron_core_make_its_config(counts: tuple[int, ...]) -> None:
    found = fields_of(*case(counts), "megatron")
    kind = package("megatron.core.transformer", "pip install megatron-core").TransformerConfig
    config = kind(**found, hidden_size=16, num_attention_heads=2, pipeline_dtype="float32")
    assert config.num_layers == sum(counts) - 3
    assert config.pipeline_model_parallel_layout.pipeline_model_parallel_size == len(counts)


@pytest.mark.slow
def test_megatron_core_reads_virtual_stages() -> None:
    place = "megatron.core.transformer.pipeline_parallel_layer_layout"
    kind = package(place, "pip install megatron-core").PipelineParallelLayerLayout
    workload = decoder(5, 2)
    plan = cuts(workload, 2, 1, 2, 3, devices=["gpu0", "gpu1"] * 2)
    found = fields_of(workload, plan, "megatron")
    layout = kind(found["pipeline_model_parallel_layout"], 2)
    layout.validate_layer_layout(5, mtp_num_layers=0)
    assert layout.virtual_pipeline_model_parallel_size == found["virtual_pipeline_model_parallel_size"] == 2
    ids = [[layout.layout[rank][chunk] for chunk in range(2)] for rank in range(2)]
    decoders = [[[each.name for each in chunk].count("decoder") for chunk in rank] for rank in ids]
    assert decoders == [[1, 2], [1, 1]]


@pytest.mark.slow
def test_megatron_core_refuses_another_layout() -> None:
    """The check above can fail."""
    place = "megatron.core.transformer.pipeline_parallel_layer_layout"
    kind = package(place, "pip install megatron-core").PipelineParallelLayerLayout
    with pytest.raises(AssertionError, match="must match num_layers"):
        kind("Et|tL", 2).validate_layer_layout(3, mtp_num_layers=0)


@pytest.mark.parametrize("counts", CUTS)
def test_accelerate_finds_every_parameter_in_the_map(counts: tuple[int, ...]) -> None:
    torch = package("torch", "pip install torch")
    modeling = package("accelerate.utils.modeling", "pip install accelerate")
    workload, plan = case(counts)
    model = model_of(names_of(workload), torch)
    found = fields_of(workload, plan, "accelerate")["device_map"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # accelerate warns of names that are no modules
        modeling.check_device_map(model, found)
    with pytest.raises(ValueError, match="does not give any device for"):
        modeling.check_device_map(model, {name: found[name] for name in list(found)[1:]})


def test_accelerate_runs_the_map_on_the_cpu(tmp_path: Path) -> None:
    """On a CPU and its disk in place of GPUs; the output is that of the whole model."""
    torch = package("torch", "pip install torch")
    accelerate = package("accelerate", "pip install accelerate")
    workload, plan = case((3, 2))
    found = fields_of(workload, plan, "accelerate")["device_map"]
    model = model_of(names_of(workload), torch).eval()
    given = torch.randn(2, 4)
    expected = model(given)
    here = {name: "cpu" if device == 0 else "disk" for name, device in found.items()}
    split = accelerate.dispatch_model(
        model, here, main_device="cpu", offload_dir=str(tmp_path), force_hooks=True
    )
    assert torch.equal(split(given), expected)


@pytest.mark.slow
@pytest.mark.parametrize("counts", CUTS)
def test_deepspeed_takes_the_bounds(counts: tuple[int, ...]) -> None:
    """A pipeline module with these parts owns the layers of each stage, and builds those."""
    module = package("deepspeed.runtime.pipe.module", "pip install deepspeed").PipelineModule
    workload, plan = case(counts)
    found = fields_of(workload, plan, "deepspeed")
    layers = range(len(found["layers"]))
    made: dict[str, Any] = {}
    exec(found["subclass"], made)
    assert issubclass(made["PlannedPipelineModule"], module)
    for stage, count in enumerate(counts):
        pipe = object.__new__(made["PlannedPipelineModule"])
        topology = SimpleNamespace(get_coord=lambda rank: SimpleNamespace(pipe=rank))
        known = {"num_stages": found["num_stages"], "_num_layers": len(layers), "_layer_specs": layers}
        pipe.__dict__ |= known | {"_topo": topology, "global_rank": stage}
        pipe._partition_layers()
        owned = [layer for layer in layers if pipe.stage_owner(layer) == stage]
        assert owned == list(range(pipe._local_start, pipe._local_stop)) and len(owned) == count


@pytest.mark.slow
@pytest.mark.parametrize("counts", CUTS)
def test_torchtitan_splits_the_model_into_the_parts(counts: tuple[int, ...]) -> None:
    """Run one after another they compute what the whole model does, and have its parameters once."""
    torch = package("torch", "pip install torch")
    remedy = "pip install torchtitan"
    split = package("torchtitan.distributed.pipeline_parallel", remedy)._split_module
    workload, plan = case(counts)
    names = names_of(workload)
    model = _Titan.of(names, torch)
    parts = fields_of(workload, plan, "torchtitan")["module_fqns_per_model_part"]
    given = torch.randn(2, 4)
    found, sizes = given, 0
    for part in parts:
        piece = split(model, part)
        found = piece(found)
        sizes += sum(each.numel() for each in piece.parameters())
    assert torch.equal(found, model(given))
    assert sizes == sum(each.numel() for each in model.parameters())


class _Titan:
    """A model as torchtitan's are: parts that are missing are None, and are passed over."""

    @staticmethod
    def of(names: list[str], torch: Any) -> Any:
        def forward(self: Any, x: Any) -> Any:
            x = self.embed(x) if self.embed is not None else x
            for layer in self.layers:
                x = layer(x)
            x = self.norm(x) if self.norm is not None else x
            return self.head(x) if self.head is not None else x

        module = type("Titan", (torch.nn.Module,), {"forward": forward})()
        count = sum(name.startswith("layers.") for name in names)
        for name in ("embed", "norm", "head"):
            setattr(module, name, torch.nn.Linear(4, 4))
        module.layers = torch.nn.ModuleList(torch.nn.Linear(4, 4) for _ in range(count))
        return module


@pytest.mark.parametrize("counts", [(3, 2), (2, 1, 2), (2, 4, 4)])
def test_torch_splits_the_model_at_the_split_points(counts: tuple[int, ...]) -> None:
    """The pieces of its own front end, run one after another, compute what the whole model does."""
    torch = package("torch", "pip install torch")
    pipelining = package("torch.distributed.pipelining", "pip install torch")
    workload, plan = case(counts)
    model = model_of(names_of(workload), torch)
    given = torch.randn(2, 4)
    points = fields_of(workload, plan, "torch")["split_points"]
    spec = dict.fromkeys(points, pipelining.SplitPoint.BEGINNING)
    pipe = pipelining.pipeline(model, (given,), split_spec=spec)
    assert pipe.num_stages == len(counts)
    found = given
    for stage, expected in enumerate(fields_of(workload, plan, "torch")["stages"]):
        piece = pipe.get_stage_module(stage)
        names = {name.rpartition(".")[0] for name, _ in piece.named_parameters()}
        assert names == set(expected)
        found = piece(found)
        found = found[0] if isinstance(found, tuple) else found
    assert torch.equal(found, model(given))


@pytest.mark.parametrize("homes", [[0, 1, 0], [0, 1, 2, 0, 2, 1]])
def test_torch_reads_the_ranks_of_the_stages_from_the_schedule(homes: list[int], tmp_path: Path) -> None:
    schedules = package("torch.distributed.pipelining.schedules", "pip install torch")
    names = ["embed", *(f"layers.{i}" for i in range(len(homes) - 1))]
    workload = line(names, gpus(3), training=True)
    options = {"schedule": "gpipe", "microbatches": 4}
    plan = cuts(workload, *[1] * len(homes), devices=[f"gpu{i}" for i in homes], **options)
    found = fields_of(workload, plan, "torch")
    path = tmp_path / "schedule.csv"
    path.write_text(found["schedule_csv"], encoding="utf-8")
    runtime = torch_runtime(len(set(homes)), len(homes), 4)
    runtime._load_csv(str(path), format="compute_only")
    read = schedules._validate_schedule(runtime.pipeline_order, len(set(homes)), len(homes), 4)
    assert [read[stage] for stage in range(len(homes))] == found["stage_to_rank"]


def test_vllm_reads_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    utils = package("vllm.distributed.utils", "pip install vllm")
    workload, plan = case((3, 1, 3))
    name, value = str(export(workload, plan, "vllm")).strip().split("=")
    monkeypatch.setenv(name, value)
    assert [utils.get_pp_indices(4, rank, 3) for rank in range(3)] == [(0, 2), (2, 3), (3, 4)]
