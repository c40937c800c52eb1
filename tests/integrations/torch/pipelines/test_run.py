"""Processes run stages under a schedule, and get the whole model's outputs and gradients, bit for bit."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from partitioner import BackendUnavailable, OptionError, PartitionerError
from partitioner.schedule.table import Table

torch = pytest.importorskip("torch", reason="pipelines need torch")
pytest.importorskip("torch.distributed.pipelining", reason="pipelines need torch's pipelining")
from partitioner.integrations.torch.pipelines.pipeline import (  # noqa: E402
    PipelineRank,
    run_pipeline,
    table_of_stages,
)
from partitioner.integrations.torch.pipelines.processes import in_processes  # noqa: E402
from partitioner.integrations.torch.pipelines.stages import stages_of  # noqa: E402
from tests.integrations.torch.pipelines.models import captured, cut_at  # noqa: E402

pytestmark = [pytest.mark.xdist_group("gloo"), pytest.mark.filterwarnings("ignore")]
SECONDS = 120
MICROBATCHES = 4


def mse(found: Any, target: Any) -> Any:
    """The loss of a tensor, or of the first of several."""
    return torch.nn.functional.mse_loss(found[0] if isinstance(found, tuple) else found, target)


def batch_for(args: Sequence[Any]) -> tuple[Any, ...]:
    """Arguments of other values for all microbatches."""
    torch.manual_seed(1)
    shapes = [(MICROBATCHES * one.shape[0], *one.shape[1:]) for one in args]
    return tuple(
        torch.randn(shape, dtype=one.dtype) if one.is_floating_point() else torch.randint(0, 50, shape)
        for one, shape in zip(args, shapes, strict=True)
    )


def parts(batch: Sequence[Any]) -> list[tuple[Any, ...]]:
    """The microbatches of a batch."""
    return list(zip(*(one.chunk(MICROBATCHES) for one in batch), strict=True))


def numbered(graph: Any, shares: Sequence[float]) -> dict[Any, int]:
    """The stage of each node: of its class, if that has several."""
    found = cut_at(graph, shares, range(len(shares) + 1))
    return {node: int(device.removeprefix("accelerator")) for node, device in found.items()}


def check_training(
    name: str,
    shares: Sequence[float],
    homes: Sequence[int],
    schedule: str | Table,
    *,
    recompute: bool = False,
) -> None:
    """Gradients and losses are those of the whole model, microbatch after microbatch."""
    model, args, graph = captured(name, training=True)
    model.eval()  # so that batch normalisation does not depend on which process saw a batch
    placement = cut_at(graph, shares, homes)
    stage_of = numbered(graph, shares)
    stages = stages_of(model, args, graph, placement, stage_of=stage_of, recompute=recompute)
    assert len(stages.modules) == len(homes)
    batch = batch_for(args)
    with torch.no_grad():
        output = model(*batch)
    target = torch.randn_like(output[0] if isinstance(output, tuple) else output)

    def work(_: int) -> Any:
        step = run_pipeline(stages, batch, target, microbatches=MICROBATCHES, schedule=schedule, loss=mse)
        grads = {path: one.grad for path, one in model.named_parameters() if one.grad is not None}
        return grads, step.losses, [one[:3] for one in step.passes]

    answers = in_processes(work, len(stages.devices), seconds=SECONDS)
    losses = [
        mse(model(*one), aim) for one, aim in zip(parts(batch), target.chunk(MICROBATCHES), strict=True)
    ]
    for each in losses:
        (each / MICROBATCHES).backward()
    found = {path: grad for grads, _, _ in answers for path, grad in grads.items()}
    expected = {path: one.grad for path, one in model.named_parameters()}
    assert found.keys() == expected.keys()
    for path, grad in expected.items():
        assert torch.equal(found[path], grad), path
    ran = [one for _, _, passes in answers for one in passes]
    assert len(ran) == len(set(ran)) >= 2 * MICROBATCHES * len(stages.modules)
    (measured,) = (found for _, found, _ in answers if found)
    assert [float(one) for one in measured] == [float(one) for one in losses]


def check_inference(name: str, shares: Sequence[float], homes: Sequence[int]) -> None:
    model, args, graph = captured(name, training=False)
    model.eval()
    stages = stages_of(model, args, graph, cut_at(graph, shares, homes))
    batch = batch_for(args)

    def work(_: int) -> Any:
        return run_pipeline(stages, batch, microbatches=MICROBATCHES).output

    (found,) = (one for one in in_processes(work, len(stages.devices), seconds=SECONDS) if one is not None)
    with torch.no_grad():
        expected = torch.cat([model(*one) for one in parts(batch)])
    assert torch.equal(found, expected)


def test_two_processes_under_1f1b() -> None:
    check_training("cnn", (0.4,), (0, 1), "1f1b")


def test_a_free_split_under_1f1b() -> None:
    """Two processes, the first of which has the first and the last stage."""
    check_training("unet", (0.3, 0.6), (0, 1, 0), "1f1b")


@pytest.mark.slow
@pytest.mark.parametrize(("schedule", "homes"), [("gpipe", (0, 1, 2)), ("1f1b", (0, 1, 0))])
@pytest.mark.parametrize("name", ["cnn", "lstm"])
def test_stages_that_run_forward_passes_again(name: str, schedule: str, homes: Sequence[int]) -> None:
    check_training(name, (0.3, 0.6), homes, schedule, recompute=True)


def test_torch_does_not_recompute_in_halves() -> None:
    with pytest.raises(PartitionerError, match="with recompute = True, torch cannot run"):
        check_training("cnn", (0.4,), (0, 1), "zb-h1", recompute=True)


@pytest.mark.parametrize("homes", [pytest.param((0, 1, 1), marks=pytest.mark.slow), (0, 1, 0)])
def test_inference(homes: Sequence[int]) -> None:
    """Tied weights are on both sides of the cut."""
    check_inference("gpt", (0.3, 0.6), homes)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shares", "homes", "schedule"),
    [
        ((0.5,), (0, 1), "gpipe"),
        ((0.5,), (0, 1), "zb-h1"),
        ((0.3, 0.6), (0, 1, 2), "1f1b"),
        ((0.3, 0.6), (0, 1, 2), "zb-h1"),
        ((0.2, 0.4, 0.7), (0, 1, 2, 3), "1f1b"),
        ((0.2, 0.5, 0.8), (0, 1, 0, 1), "interleaved"),
        ((0.2, 0.5, 0.8), (0, 1, 2, 1), "gpipe"),
        ((0.1, 0.3, 0.5, 0.6, 0.8), (0, 1, 2, 0, 2, 1), "1f1b"),
    ],
)
@pytest.mark.parametrize("name", ["cnn", "unet", "experts", "lstm"])
def test_every_model_under_every_schedule(
    name: str, shares: Sequence[float], homes: Sequence[int], schedule: str
) -> None:
    check_training(name, shares, homes, schedule)


def in_v(kind: str, ranks: int) -> Table:
    """The order of a schedule of torch whose stages go to the last rank and back, as a table."""
    schedules = pytest.importorskip("torch.distributed.pipelining.schedules")
    form = SimpleNamespace(
        pp_group_size=ranks, _n_microbatches=MICROBATCHES, num_stages=2 * ranks, n_local_stages=2
    )
    order = {
        f"accelerator{rank}": getattr(schedules, kind)._calculate_single_rank_operations(form, rank)
        for rank in range(ranks)
    }
    steps = {device: [one for one in row if one is not None] for device, row in order.items()}
    return Table.from_rows(
        {
            device: [str(one) for step in row for one in step.sub_actions or (step,)]
            for device, row in steps.items()
        }
    )


ZBV, DUAL = (
    "ScheduleZBVZeroBubble",
    "ScheduleDualPipeV",
)  # the second needs twice as many microbatches as ranks


@pytest.mark.parametrize(
    ("name", "ranks", "kind"),
    [
        ("cnn", 2, ZBV),
        *(
            pytest.param(*one, marks=pytest.mark.slow)
            for one in (
                ("unet", 2, ZBV),
                ("experts", 3, ZBV),
                ("lstm", 2, ZBV),
                ("cnn", 2, DUAL),
                ("unet", 2, DUAL),
            )
        ),
    ],
)
def test_torchs_schedules_in_a_v_run_as_tables(name: str, ranks: int, kind: str) -> None:
    """The first and the last stage are on one rank, and so are two neighbours on the last rank."""
    homes = [*range(ranks), *reversed(range(ranks))]
    shares = [(i + 1) / len(homes) for i in range(len(homes) - 1)]
    check_training(name, shares, homes, in_v(kind, ranks))


def test_a_table_of_other_stages_is_refused() -> None:
    model, args, graph = captured("experts", training=False)
    stages = stages_of(model, args, graph, cut_at(graph, (0.5,), (0, 1)))
    rows = {"accelerator0": ["0F0", "0B0"], "accelerator1": ["1F0", "1B0"]}
    assert table_of_stages(stages, Table.from_rows(rows), 1).rows() == rows
    with pytest.raises(OptionError, match="microbatches = 3: must be 1, as in the schedule"):
        table_of_stages(stages, Table.from_rows(rows), 3)
    with pytest.raises(OptionError, match="schedule: stage 1 on accelerator1 is not in it"):
        table_of_stages(stages, Table.from_rows({"accelerator0": ["0F0", "0B0"]}), 1)
    rows["accelerator2"] = ["2F0", "2B0"]
    with pytest.raises(OptionError, match="schedule: stage 2 on accelerator2 is no stage of the plan"):
        table_of_stages(stages, Table.from_rows(rows), 1)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cnn", "unet", "experts", "lstm"])
@pytest.mark.parametrize("homes", [(0, 1, 2, 3), (0, 1, 2, 1), (1, 0, 0, 1)])
def test_inference_of_every_model(name: str, homes: Sequence[int]) -> None:
    check_inference(name, (0.25, 0.5, 0.75), homes)


def test_a_failing_rank_is_reported_and_none_stays() -> None:
    def fail(rank: int) -> int:
        if rank == 1:
            raise ValueError("as asked")
        return rank

    with pytest.raises(PartitionerError, match=r"(?s)rank 1 of the pipeline failed.*ValueError: as asked"):
        in_processes(fail, 2, seconds=SECONDS)


def test_without_processes_or_with_a_wrong_loss_it_is_refused() -> None:
    model, args, graph = captured("lstm", training=False)
    stages = stages_of(model, args, graph, cut_at(graph, (0.5,), (0, 1)))
    with pytest.raises(OptionError, match="process group: must be initialised"):
        PipelineRank(stages, 2)
    with pytest.raises(OptionError, match="loss with schedule = '1f1b'"):
        PipelineRank(stages, 2, "1f1b")
    with pytest.raises(OptionError, match="loss with schedule = 'inference'"):
        PipelineRank(stages, 2, "inference", mse)
    with pytest.raises(OptionError, match="microbatches = 0"):
        PipelineRank(stages, 0)


def test_another_version_of_torch_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The runtime of schedules is private in torch: what is used of it is known for one version."""
    model, args, graph = captured("lstm", training=False)
    stages = stages_of(model, args, graph, cut_at(graph, (0.5,), (0, 1)))
    monkeypatch.setattr(torch, "__version__", "2.99.0")
    with pytest.raises(BackendUnavailable, match=r"torch 2\.99\.0: run_pipeline uses a private interface"):
        PipelineRank(stages, 2)


def test_what_is_private_in_torch_is_there() -> None:
    """A change of these names or arguments must show here first."""
    schedules = pytest.importorskip("torch.distributed.pipelining.schedules")
    names = inspect.signature(schedules._PipelineScheduleRuntime._step_microbatches).parameters
    assert {"arg_mbs", "kwarg_mbs", "target_mbs", "losses"} <= set(names)
    actions = [schedules._Action.from_str(cell) for cell in ("0F0", "1F0", "1B0", "0B0")]
    rows = {0: [actions[0], actions[3]], 1: actions[1:3]}
    rows = {rank: schedules._add_reduce_grad(row, 1) for rank, row in rows.items()}
    ordered = schedules._add_send_recv(rows, stage_to_rank={0: 0, 1: 1}.__getitem__, num_stages=2)
    assert list(map(str, ordered[0]))[:5] == ["0F0", "0SEND_F0", "0RECV_B0", "0B0", "0REDUCE_GRAD"]
    assert list(map(str, ordered[1]))[:5] == ["1RECV_F0", "1F0", "1B0", "1SEND_B0", "1REDUCE_GRAD"]
    later = [str(action) for row in ordered.values() for action in row[5:]]
    assert all("WAIT_REDUCE_GRAD" in action for action in later)  # from 2.15 on
