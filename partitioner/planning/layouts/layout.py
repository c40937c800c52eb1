"""A layout of a language model, and the cluster that it is laid out on."""

from __future__ import annotations

from dataclasses import dataclass

from partitioner.base.argument_types import check_counts
from partitioner.base.units import MS_PER_SECOND
from partitioner.estimation.named_devices import NamedDevice
from partitioner.workload.device_validation import check_positive


@dataclass(frozen=True, order=True)
class ClusterLayout:
    """How the GPUs of a cluster divide a model and a batch among them.

    Ranks are numbered with tensor parallelism innermost, then context, data and pipeline parallelism, as in
    Megatron-LM.

    Parameters
    ----------
    tensor, context, expert, pipeline, data
        The degree of each parallelism. `expert` devices are among the `data` * `context` ones.
    virtual_stages
        Stages of the pipeline on each device.
    microbatch
        Sequences of a microbatch.
    schedule
        The schedule of the pipeline, a name as in ``solve(schedule=...)``.
    recompute
        What layers compute again in the backward pass: ``"none"``, ``"selective"`` or ``"full"``.
    zero
        What replicas divide among them: 0 nothing, 1 the optimizer's state, 2 gradients too, 3 parameters
        too.

    Examples
    --------
    >>> ClusterLayout(tensor=8, pipeline=8, data=16).gpus
    1024
    """

    tensor: int = 1
    pipeline: int = 1
    data: int = 1
    microbatch: int = 1
    virtual_stages: int = 1
    context: int = 1
    expert: int = 1
    schedule: str = "1f1b"
    recompute: str = "none"
    zero: int = 0

    @property
    def gpus(self) -> int:
        """How many GPUs the layout takes."""
        return self.tensor * self.context * self.pipeline * self.data

    @property
    def stages(self) -> int:
        """How many stages the pipeline has."""
        return self.pipeline * self.virtual_stages

    @property
    def apart(self) -> int:
        """The span of ranks of two neighbouring stages, the first GPU of each included."""
        return self.tensor * self.context * self.data + 1

    def microbatches(self, global_batch: int) -> int:
        """Return how many microbatches a pipeline runs of a batch of `global_batch` sequences."""
        return global_batch // (self.data * self.microbatch)

    @property
    def name(self) -> str:
        """A short name, such as ``"TP8 PP8x2 DP16 MB1 Z1 full"``; one that is usual is left out.

        That is a degree of 1 of context or expert parallelism, ZeRO 0, no recomputation, and the schedule
        1F1B, interleaved where a device has several stages.
        """
        usual = "1f1b" if self.virtual_stages == 1 else "interleaved_1f1b"
        virtual = f"x{self.virtual_stages}" if self.virtual_stages > 1 else ""
        parts = [f"TP{self.tensor}", f"PP{self.pipeline}{virtual}", f"DP{self.data}"]
        parts += [f"CP{self.context}"] * (self.context > 1) + [f"EP{self.expert}"] * (self.expert > 1)
        parts += [f"MB{self.microbatch}"] + [f"Z{self.zero}"] * (self.zero > 0)
        parts += [self.recompute] * (self.recompute != "none") + [self.schedule] * (self.schedule != usual)
        return " ".join(parts)


@dataclass(frozen=True)
class Cluster:
    """Equal GPUs in equal servers.

    Parameters
    ----------
    gpus
        How many there are.
    device
        Their figures.
    node
        GPUs of a server.
    peer, network
        Bytes a second that a GPU sends to others of its server, and to those of other servers.
    latency
        Seconds that a message between servers takes in addition.
    memory
        Bytes of a GPU's memory that may be used.

    Raises
    ------
    OptionError
        Naming the option, its value and what it may be.
    """

    gpus: int
    device: NamedDevice
    node: int
    peer: float
    network: float
    latency: float
    memory: float

    def __post_init__(self) -> None:
        check_counts(gpus=self.gpus, node=self.node)
        check_positive(peer=self.peer, network=self.network, memory=self.memory)

    def bandwidth(self, span: int) -> float:
        """Return the bytes a second between the GPUs of a group whose ranks span `span` GPUs."""
        return self.peer if span <= self.node else self.network

    def delay(self, span: int) -> float:
        """Return the milliseconds that a message takes in addition within such a group."""
        return 0.0 if span <= self.node else MS_PER_SECOND * self.latency
