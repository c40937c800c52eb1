"""What the layers of a served model take on a group of equal GPUs, and what the pool has."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from partitioner.base.argument_types import check_counts
from partitioner.base.errors import OptionError, shown
from partitioner.base.units import MS_PER_SECOND
from partitioner.formats.llm.decoder import Decoder
from partitioner.formats.llm.layout_options import LayoutOptions, numbers_of
from partitioner.formats.llm.model import Setting, experts_of, layers_of
from partitioner.formats.llm.operators import TokenRun
from partitioner.formats.llm.parallelism import Parallelism, one_share
from partitioner.planning.pools.pool import PooledKind
from partitioner.workload.device_validation import is_amount
from partitioner.workload.graph import Floats


@dataclass(frozen=True)
class ServingLoad:
    """Requests of one kind, and how long they may wait.

    Parameters
    ----------
    prompt, generate
        Tokens of a prompt, and tokens that are generated after it.
    ttft, tpot
        Milliseconds until the first token, and for each further token, at most; infinity for no limit.

    Raises
    ------
    OptionError
        Naming the option, its value and what it may be.
    """

    prompt: int
    generate: int
    ttft: float = math.inf
    tpot: float = math.inf

    def __post_init__(self) -> None:
        check_counts(prompt=self.prompt, generate=self.generate)
        for name in ("ttft", "tpot"):
            value = getattr(self, name)
            if value != math.inf and not (is_amount(value) and value > 0):
                raise OptionError(f"{name} = {shown(value)}: must be a number of milliseconds above 0")


BOTH, PREFILL, DECODE = "both", "prefill", "decode"  # what pipelines do with a request


class ServedLayers(NamedTuple):
    """What every layer takes on a group of GPUs that divide it, each of shape (layers,).

    Parameters
    ----------
    prefill
        Milliseconds of one prompt.
    decode
        Milliseconds of a step in which each sequence of a batch gets a token.
    weights, cache
        Bytes of all GPUs of the group: of the parameters, and of a sequence's keys and values at its end.
    sent
        Bytes of a sequence, all of its tokens, that go to the next layer.
    workspace
        Bytes of a GPU while the prompt passes.
    moved
        Milliseconds in which the group sends or takes the cache of a prompt.
    """

    prefill: Floats
    decode: Floats
    weights: Floats
    cache: Floats
    sent: Floats
    workspace: Floats
    moved: Floats


@dataclass(frozen=True, eq=False)
class ServingCosts:
    """The costs of a model on the kinds of a pool, computed once for each choice of what they depend on."""

    decoder: Decoder
    load: ServingLoad
    dtype: str
    network: float
    options: LayoutOptions = field(default_factory=LayoutOptions)
    _known: dict[tuple[str, int, int, int], ServedLayers] = field(default_factory=dict)

    def layers(self, kind: PooledKind, tensor: int, batch: int, expert: int = 1) -> ServedLayers:
        """Return the costs on groups of `tensor` GPUs, `expert` groups of which divide the experts."""
        key = (kind.name, tensor, batch, expert)
        if key not in self._known:
            self._known[key] = self._computed(kind, tensor, batch, expert)
        return self._known[key]

    def request(self, layers: ServedLayers, batch: int, role: str = BOTH) -> Floats:
        """Return the milliseconds of a request in every layer, its share of the steps of a batch."""
        if role == PREFILL:
            return layers.prefill + layers.moved
        steps = self.steps(role) * layers.decode / batch
        return steps + (layers.moved if role == DECODE else layers.prefill)

    def steps(self, role: str) -> float:
        """Return how many tokens of a request come one after the other; the first is that of the prompt."""
        return self.load.generate - 1 if role == DECODE else self.load.generate

    def first(self, layers: ServedLayers, role: str) -> Floats:
        """Return the milliseconds until the first token in every layer, which waits for a step of others."""
        if role == DECODE:
            return np.zeros(len(layers.prefill))
        return layers.prefill + (layers.decode if role == BOTH else 0.0)

    def experts(self, kind: PooledKind, tensor: int) -> Floats:
        """Return what experts have of `prefill`, `decode` and `weights` for one user, shape (3, layers)."""
        share = one_share(self.decoder, parallelism := Parallelism(tensor=tensor))
        prompt, step, _ = self._settings(kind, 1, parallelism)
        names = [layer.name for layer in layers_of(share, step)]
        prefill, decode = experts_of(share, prompt), experts_of(share, step)
        none = (0.0, 0.0)
        rows = [
            (prefill.get(name, none)[0], decode.get(name, none)[0], decode.get(name, none)[1] * tensor)
            for name in names
        ]
        return np.array(rows, dtype=np.float64).T

    def _settings(self, kind: PooledKind, batch: int, parallelism: Parallelism) -> list[Setting]:
        """Return how a prompt passes, a step amid the generated tokens, and the last step."""
        load, numbers = self.load, numbers_of(self.dtype, False, self.options)
        runs = (
            TokenRun(1, load.prompt),
            TokenRun(batch, 1, load.prompt + load.generate // 2),
            TokenRun(1, 1, load.prompt + load.generate - 1),
        )
        return [
            Setting(
                run, kind.device, self.dtype, None, False, numbers, self.network, 1, parallelism,
                server=kind.node,
            )
            for run in runs
        ]  # fmt: skip

    def _computed(self, kind: PooledKind, tensor: int, batch: int, expert: int) -> ServedLayers:
        share = one_share(self.decoder, parallelism := Parallelism(tensor=tensor, expert_parallel=expert))
        load, settings = self.load, self._settings(kind, batch, parallelism)
        prefill, decode, full = (layers_of(share, setting) for setting in settings)
        tokens = 1 + load.generate / load.prompt  # of a sequence, in prompts

        def column(layers: list, name: str) -> Floats:  # type: ignore[type-arg]
            return np.array([getattr(layer, name) or 0.0 for layer in layers], dtype=np.float64)

        return ServedLayers(
            column(prefill, "forward"),
            column(decode, "forward"),
            column(prefill, "parameters") * tensor,
            column(full, "size") * tensor,
            column(prefill, "output") * tensor * tokens,
            column(prefill, "activations") + column(prefill, "workspace"),
            column(full, "size") / tokens / self.network * MS_PER_SECOND,
        )
