"""Workloads of each family from their dimensions, batch and machine."""

from collections.abc import Callable
from functools import partial

from architectures.bert import bert
from architectures.cost_model import V100_16GB, Accelerator
from architectures.document import Machine, Options
from architectures.gnmt import Translation, gnmt
from architectures.gpt import gpt
from architectures.mixture import Experts, mixture
from architectures.transformer import Shape
from architectures.workload import Architecture, Workload


def _workload(
    title: str,
    build: Architecture,
    accelerator: Accelerator,
    accelerators: int,
    options: Options,
    cpus: int = 1,
) -> Workload:
    return Workload(title, build, Machine(accelerator, accelerators, cpus), options)


def bert_workload(
    layers: int, accelerator: Accelerator, accelerators: int, options: Options, batch: int = 8
) -> Workload:
    """Return BERT-large, or BERT-base dimensions for at most 12 blocks."""
    hidden = 1024 if layers > 12 else 768
    shape = Shape(layers, hidden, hidden // 64, 4 * hidden, 30522, batch, 512)
    title = f"BERT-{layers}, hidden {hidden}, batch {batch} x 512 tokens"
    return _workload(title, partial(bert, shape=shape), accelerator, accelerators, options)


def gpt_workload(
    title: str,
    dimensions: tuple[int, int, int],
    batch: tuple[int, int],
    machine: tuple[Accelerator, int],
    options: Options,
    cpus: int = 1,
) -> Workload:
    """Return a GPT of some layers, hidden size and heads for sequences and tokens."""
    layers, hidden, heads = dimensions
    shape = Shape(layers, hidden, heads, 4 * hidden, 50257, *batch)
    text = f"{title}, {layers} blocks, hidden {hidden}, batch {batch[0]} x {batch[1]} tokens"
    return _workload(text, partial(gpt, shape=shape), *machine, options, cpus)


def gnmt_workload(accelerators: int, options: Options, batch: int, cpus: int = 1) -> Workload:
    """Return GNMT with 8 layers on either side."""
    shape = Translation(8, 1024, 32317, batch, 50)
    title = f"GNMT, 8 + 8 LSTM layers of 1024 units, batch {batch} x 50 tokens"
    return _workload(title, partial(gnmt, shape=shape), V100_16GB, accelerators, options, cpus)


def image_workload(
    title: str,
    build: Callable[..., None],
    batch: int,
    machine: tuple[Accelerator, int],
    options: Options,
) -> Workload:
    """Return a convolutional network for a batch of pictures."""
    return _workload(f"{title}, batch {batch}", partial(build, batch=batch), *machine, options)


def mixture_workload(
    title: str,
    shape: Shape,
    experts: Experts,
    machine: tuple[Accelerator, int],
    options: Options,
) -> Workload:
    """Return a mixture of experts for the batch of its shape."""
    build = partial(mixture, shape=shape, experts=experts)
    text = f"{title}, {shape.layers} blocks, hidden {shape.hidden}, {experts.count} experts"
    batch = f"batch {shape.batch} x {shape.sequence} tokens"
    return _workload(f"{text}, {batch}", build, *machine, options)
