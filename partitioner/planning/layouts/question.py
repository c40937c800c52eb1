"""What is asked for when layouts are ranked: a model, a cluster, a batch, and what may be run."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from partitioner.base.argument_types import check_counts, check_word
from partitioner.base.clock import Clock
from partitioner.base.errors import OptionError, shown
from partitioner.base.files import path_name, read_json
from partitioner.base.interruption import Interruption
from partitioner.estimation.named_devices import NamedDevice, named_device
from partitioner.formats.hugging_face import decoder_of
from partitioner.formats.llm.decoder import Decoder
from partitioner.formats.llm.layout_options import LayoutOptions
from partitioner.planning.layouts.costs import ModelCosts
from partitioner.planning.layouts.layout import Cluster, ClusterLayout
from partitioner.planning.layouts.result import LayoutRow
from partitioner.planning.layouts.runtimes import RUNTIMES
from partitioner.planning.layouts.search import ClusterLayoutSearch
from partitioner.planning.layouts.space import LayoutSpace
from partitioner.planning.layouts.timing import LayoutRun
from partitioner.workload.device_validation import check_positive

NODE, NETWORK, LATENCY = 8, 25e9, 5e-6
TRAINED = 3  # passes' worth of the forward operations that a step of training has


@dataclass(frozen=True)
class LayoutQuestion:
    """A model to be trained on a cluster with batches of a size.

    Parameters
    ----------
    decoder
        The model, without the blocks that predict further tokens.
    cluster
        The GPUs.
    global_batch, sequence
        Sequences of a batch, and tokens of a sequence.
    dtype
        The type of the factors of products.
    runtime
        A name of :data:`partitioner.planning.layouts.runtimes.RUNTIMES`.
    options
        Types of numbers and the optimizer.
    """

    decoder: Decoder
    cluster: Cluster
    global_batch: int
    sequence: int
    dtype: str = "bfloat16"
    runtime: str = "any"
    options: LayoutOptions = field(default_factory=LayoutOptions)

    @property
    def space(self) -> LayoutSpace:
        """All layouts that the runtime can run."""
        selective = self.options.get("attention") == "unfused"
        return LayoutSpace(self.decoder, self.cluster, self.global_batch, RUNTIMES[self.runtime], selective)

    def layouts(self, first: Sequence[ClusterLayout] = ()) -> tuple[list[ClusterLayout], int]:
        """Return the layouts of the space in a mixed order, after those of `first`, and how many these are.

        So a search that the clock ends has seen layouts of every kind.
        """
        every = list(self.space)
        random.Random(0).shuffle(every)
        known = set(every).intersection(first)
        wanted = [each for each in dict.fromkeys(first) if each in known]
        return [*wanted, *(each for each in every if each not in known)], len(wanted)

    def search(self, top: int, clock: Clock, interruption: Interruption) -> ClusterLayoutSearch:
        """Return a search for the `top` fastest layouts, which has not begun."""
        costs = ModelCosts(self.decoder, self.cluster, self.sequence, self.dtype, self.options)
        return ClusterLayoutSearch(costs, self.global_batch, top, clock, interruption)

    @property
    def tokens(self) -> int:
        """The tokens of a batch."""
        return self.global_batch * self.sequence

    def row(self, run: LayoutRun) -> LayoutRow:
        """Return the figures of a simulated layout."""
        cluster = self.cluster
        rate = TRAINED * run.costs.flops() * self.global_batch / run.seconds / cluster.gpus
        return LayoutRow(
            run.layout,
            run.seconds,
            self.tokens / run.seconds,
            rate / 1e12,
            rate / cluster.device.speed(self.dtype),
            float(run.memory.max()),
            run.simulated[2],
            run.exposed,
            run.blocks,
        )


def asked_question(
    config: str | os.PathLike[str] | dict[str, Any],
    *,
    gpus: int | None,
    device: str | NamedDevice,
    global_batch: int,
    sequence: int,
    tokens_per_second: float | None,
    node: int,
    peer: float | None,
    network: float,
    latency: float,
    memory: float | None,
    dtype: str,
    runtime: str,
    options: LayoutOptions,
) -> LayoutQuestion:
    """Return the question that the arguments of :func:`partitioner.plan` ask, which has their defaults.

    Without a number of GPUs the cluster has those of one server.

    Raises
    ------
    WorkloadError
        If the config breaks a rule.
    OptionError
        If an option is not in its range.
    """
    if (gpus is None) == (tokens_per_second is None):
        raise OptionError(f"gpus = {shown(gpus)}: one of gpus and tokens_per_second must be given")
    if gpus is None:
        check_positive(tokens_per_second=tokens_per_second)
    check_counts(gpus=1 if gpus is None else gpus, global_batch=global_batch, sequence=sequence)
    check_word("runtime", runtime, tuple(RUNTIMES))
    cluster = cluster_of(named_device(device), gpus or node, node, peer, network, latency, memory)
    return LayoutQuestion(decoder_to_train(config), cluster, global_batch, sequence, dtype, runtime, options)


def decoder_to_train(config: str | os.PathLike[str] | dict[str, Any]) -> Decoder:
    """Return the model of a config, without the blocks that predict further tokens.

    Raises
    ------
    WorkloadError
        If the config breaks a rule.
    """
    content, source = (
        (config, "config") if isinstance(config, dict) else (read_json(config), path_name(config))
    )
    return replace(decoder_of(content, source), predictors=())


def cluster_of(
    device: NamedDevice,
    gpus: int,
    node: int,
    peer: float | None,
    network: float,
    latency: float,
    memory: float | None,
) -> Cluster:
    """Return the cluster with what is not given taken from the device.

    Raises
    ------
    OptionError
        If an option is not in its range.
    """
    own = peer if peer is not None else device.peer or device.host or network
    return Cluster(gpus, device, node, own, network, latency, device.memory if memory is None else memory)
