"""Times of a decoder's layers: operator by operator from curves, or from the peak by one efficiency."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np

from partitioner.estimation.device_operations import (
    AttentionScores,
    DeviceOperation,
    ExpertProducts,
    Product,
    Traffic,
    unfused_attention,
)
from partitioner.estimation.device_time import operation_time
from partitioner.estimation.named_devices import BYTES, NamedDevice
from partitioner.estimation.roofline import roofline_time
from partitioner.formats.llm.decoder import DecoderBlock
from partitioner.formats.llm.memory import NumberBytes
from partitioner.formats.llm.operators import Operator, Operators, TokenRun, alternate_products
from partitioner.formats.llm.parallelism import Parallelism

SUSTAINED = 1.12  # time of an operator in training over that alone: the ten runs of Narayanan et al. 2021,
# Table 1, need 1.07 to 1.14; two runs with products in float8 0.88 and 1.09, and take 1
REST = "bfloat16"  # the type in which traffic is counted
CAST = 2  # numbers of two bytes: read once, and written in one byte twice
BACKWARD = 2  # arithmetic and traffic of a backward pass over those of the forward pass
AGAIN: dict[str, tuple[type, ...]] = {  # what each recomputation runs again in the backward pass
    "none": (),
    "selective": (AttentionScores,),
    "elementwise": (Traffic,),
    "alternate": (ExpertProducts, Traffic),
    "full": (AttentionScores, ExpertProducts, Product, Traffic),
}


class Runs(Protocol):
    """How a layer runs: the fields of `Setting` that its time depends on."""

    @property
    def device(self) -> NamedDevice:
        """The device."""

    @property
    def dtype(self) -> str:
        """The type of the factors of products."""

    @property
    def efficiency(self) -> float | None:
        """The part of the peak that is reached; None for curves."""

    @property
    def parallelism(self) -> Parallelism:
        """What is computed again, and the kernel of attention."""

    @property
    def numbers(self) -> NumberBytes:
        """The bytes of numbers by purpose."""

    @property
    def microbatches(self) -> int:
        """The samples after which parameters are updated."""

    @property
    def run(self) -> TokenRun:
        """What passes the layer at once."""

    @property
    def training(self) -> bool:
        """Whether there is a backward pass."""


class PassTimes(NamedTuple):
    """Milliseconds of the forward and of the backward pass; 0 for the second without training."""

    forward: float
    backward: float


def pass_times(
    operators: Operators,
    setting: Runs,
    block: DecoderBlock | None,
    hidden: int = 0,
    stored: float | None = None,
) -> PassTimes:
    """Return the times of a layer of some operators; `block` is None for a layer outside of blocks.

    `hidden` is the hidden size of a block; `stored` the bytes of a parameter in memory, which are fewer than
    in a product where weights are quantised; None for those of the type of the numbers.
    By curves each operator takes its own time; its backward pass consists of the products for both gradients,
    the gradients of attention, and more traffic. With an efficiency the backward pass takes twice as long as
    the forward pass. What a block computes again is added to its backward pass. In training with products of
    one byte or less the products outside of blocks are those of :data:`REST`, and the factors of the others
    are cast (:func:`casts`). Without training a kernel adds and takes the norm at once.
    """
    recompute = setting.parallelism.recompute if block is not None else "none"
    if setting.efficiency is not None:
        return _by_efficiency(operators, setting, recompute == "full")
    if block is not None and block.norms > 1 and not setting.training:
        operators = _fused_adds(operators)
    narrow = setting.training and BYTES[setting.dtype] < BYTES[REST]
    dtype = REST if narrow and block is None else setting.dtype
    time = partial(_total, device=setting.device, dtype=dtype)
    share = 1.0 if stored is None or setting.training else stored / BYTES[setting.dtype]
    runs = [run for one in operators for run in _kernels(one, setting, block, share)]
    forward, backward = time(runs), 0.0
    if setting.training:
        again = [run for run in runs if isinstance(run, AGAIN[recompute])]
        if recompute == "selective":
            again = [run for one in operators for run in _scores_again(one, setting, block)]
        if recompute == "alternate" and block is not None:
            again += alternate_products(block, hidden, setting.run)[0]
        backward = time([back for run in runs for back in run.backward()]) + time(again)
        if narrow and block is not None:
            cast = casts(block, hidden, runs, setting)
            forward, backward = forward + time(cast.inputs), backward + time(cast.gradients)
        sustained = 1.0 if narrow else SUSTAINED
        forward, backward = forward * sustained, backward * sustained
    return PassTimes(forward, backward)


def expert_time(operators: Operators, setting: Runs, stored: float) -> float:
    """Return the ms of a block's experts in a forward pass, a part of what :func:`pass_times` returns."""
    share = stored / BYTES[setting.dtype]
    runs = [run for one in operators for run in _kernels(one, setting, None, share)]
    return _total([run for run in runs if isinstance(run, ExpertProducts)], setting.device, setting.dtype)


def _fused_adds(operators: Operators) -> Operators:
    """Return a block's operators with its last two, which add, as parts of its first two, which are norms.

    Such a kernel reads both terms, and writes their sum and its norm (vLLM's ``fused_add_rms_norm``).
    """
    norms = [replace(one, runs=(Traffic(2 * one.moved),)) for one in operators[:2]]
    return [*norms, *operators[2:-2]]


class Casts(NamedTuple):
    """What casts the inputs of products, and the gradients of their results, to one byte a number."""

    inputs: list[Traffic]
    gradients: list[Traffic]


def casts(block: DecoderBlock, hidden: int, runs: Iterable[DeviceOperation], setting: Runs) -> Casts:
    """Return what casts the factors of a block's products to one byte a number in training.

    A cast reads numbers of two bytes and writes them in one, as they are and transposed, because products of
    float8 on Hopper want the inner numbers of both factors next to one another. The largest number of a
    tensor is found before (current scaling), but not where groups have factors of their own
    (``"float8_block"``). With `fused_casts` (delayed scaling) norms and activation functions cast what they
    give: what attention gives is left, and the gradients of queries, keys, values and of what is added to
    the residual (NVIDIA Transformer Engine, "Using FP8": its norms and activations return casts).
    """
    if setting.parallelism.fused_casts:
        attention = block.attention
        given = attention.heads * attention.value
        entered = attention.heads * attention.key + attention.kv_heads * (attention.key + attention.value)
        tokens = CAST * setting.run.tokens
        return Casts(
            [Traffic(tokens * given)], [Traffic(tokens * (entered + hidden)), Traffic(tokens * hidden)]
        )
    each = CAST + (setting.dtype != "float8_block")
    inputs, gradients = [], []
    for run in runs:
        if isinstance(run, Product):
            inputs.append(Traffic(each * run.count * run.m * run.k))
            gradients.append(Traffic(each * run.count * run.m * run.n))
        elif isinstance(run, ExpertProducts):
            inputs.append(Traffic(each * run.rows * (run.hidden + run.width)))
            gradients.append(Traffic(each * run.rows * (run.hidden + run.parts * run.width)))
    return Casts(inputs, gradients)


def update_times(count: float, setting: Runs) -> float:
    """Return the ms for a sample in which `count` parameters add up gradients and are updated.

    A sample's gradients are added to those of the batch, where it has more samples than one; a copy of them
    is written and read, and the sample's read, if they are copied first. Once a batch the
    update reads gradients and states, and writes states and parameters; its time is divided by the samples.
    With an efficiency neither is counted.
    """
    if not setting.training or setting.efficiency is not None:
        return 0.0
    numbers, parallelism = setting.numbers, setting.parallelism
    own = -1 if parallelism.fused_gradients else 1
    copied = parallelism.copied_gradients * 2 * numbers.gradients
    added = (2 * numbers.gradients + own * numbers.computed + copied) / parallelism.share(zero=3)
    updated = (numbers.gradients + 2 * numbers.optimizer + numbers.weights.block) / parallelism.share(zero=1)
    nbytes = count * (added * (setting.microbatches > 1) + updated / setting.microbatches)
    return _total([Traffic(nbytes / BYTES[REST])], setting.device, setting.dtype) if nbytes else 0.0


def _by_efficiency(operators: Iterable[Operator], setting: Runs, again: bool) -> PassTimes:
    flops = np.array([one.flops for one in operators])
    traffic = np.array([one.read + one.moved for one in operators]) * BYTES[setting.dtype]
    efficiency: float = setting.efficiency  # type: ignore[assignment]
    total = float(roofline_time(flops, traffic, setting.device, setting.dtype, efficiency=efficiency).sum())
    return PassTimes(total, total * (BACKWARD + again) * setting.training)


def _kernels(
    one: Operator, setting: Runs, block: DecoderBlock | None, stored: float = 1.0
) -> list[DeviceOperation]:
    """Return what a device runs for an operator, with the kernels of the setting and its stored weights."""
    found: list[DeviceOperation] = []
    for run in one.runs:
        if isinstance(run, AttentionScores) and setting.parallelism.attention == "unfused":
            found += unfused_attention(run, bool(block and block.dropout and setting.training))
        elif isinstance(run, ExpertProducts):
            routing = setting.parallelism.routed(setting.training)
            found.append(replace(run, stored=stored, routing=routing))
        elif isinstance(run, Product) and stored != 1:
            found.append(replace(run, stored=stored))
        else:
            found.append(run)
    return found


def _scores_again(one: Operator, setting: Runs, block: DecoderBlock | None) -> list[DeviceOperation]:
    """Return what selective recomputation runs again of an operator: the scores, by any kernel."""
    scores = any(isinstance(run, AttentionScores) for run in one.runs)
    return _kernels(one, setting, block) if scores else []


def _total(runs: Iterable[DeviceOperation], device: NamedDevice, dtype: str) -> float:
    """Return the milliseconds of some operations one after the other."""
    return float(sum(operation_time(device, run, dtype) for run in runs))
