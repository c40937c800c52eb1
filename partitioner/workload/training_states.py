"""Training in less memory: what layers compute again, what replicas divide, and the state of the optimizer.

A layer L of forward nodes F and backward nodes B, with activations A, parameters P, gradients G (bytes of all
its nodes together), that receives R bytes from other forward nodes, becomes with N replicas:

    recompute full   activations R, workspace + (A - R), time of B + time of F        where R < A
    zero 1, 2, 3     state of the optimizer / N, gradients / N, parameters / N
    zero 3           workspace + P + G, and each pass takes at least as long as its collectives:
                     forward P (N - 1) / N, backward (P + G) (N - 1) / N bytes
    optimizer        8 bytes a parameter (adam), 4 (momentum), 0 (sgd), each with a copy of 4 of narrower
                     ones, 2 (adam_8bit)

Nodes of a layer that is computed again or gathered stay together. Where a plan gives a stage r copies, these
divide the state of the optimizer (zero 1) and gradients (zero 2, 3) once more: by N r in all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from partitioner.base.argument_types import check_counts, check_word, is_count
from partitioner.base.errors import OptionError, shown
from partitioner.workload.array_input import MEMORY_PARTS
from partitioner.workload.exchange import is_once_a_batch
from partitioner.workload.extras import MOST_ZERO, Extras
from partitioner.workload.graph import Graph, Ints
from partitioner.workload.graph_edits import bytes_per_time, with_classes_joined
from partitioner.workload.tied_weights import AUTO, CHOICES, exchanged_once_in, with_tied_weights

OPTIMIZERS = {"adam": 8.0, "adam_8bit": 2.0, "momentum": 4.0, "sgd": 0.0}  # bytes of a parameter, no copy
COPY = 4.0  # bytes of the copy of a parameter that mixed precision updates
RECOMPUTE = (
    "none",
    "selective",
    "elementwise",
    "alternate",
    "full",
)  # all but the last by operator: of configs
COUNT = "parameterCount"  # the field of a node with the number of its parameters
USUAL_WIDTH = 4.0  # bytes of a parameter where nodes do not say how many they have
PARAMETERS, GRADIENTS, OPTIMIZER, ACTIVATIONS, WORKSPACE = range(len(MEMORY_PARTS))


@dataclass(frozen=True)
class TrainingStates:
    """What training keeps in memory, as options of :func:`partitioner.solve`; None or the default: as it is.

    Parameters
    ----------
    recompute
        ``"full"``: layers keep what they receive, and compute the rest again in the backward pass.
    zero
        What replicas divide among them: the optimizer's state (1), gradients too (2), parameters too (3).
    data_parallel
        The replicas; each device of the workload stands for this number of them.
    optimizer
        One of :data:`OPTIMIZERS`.
    tied
        How tied weights are trained, see :func:`partitioner.workload.tied_weights.with_tied_weights`;
        ``"auto"`` is for :func:`partitioner.solve` to decide and changes no graph.

    Raises
    ------
    OptionError
        Naming the option, its value and what it may be.
    """

    recompute: str = "none"
    zero: int = 0
    data_parallel: int = 1
    optimizer: str | None = None
    tied: str | None = None

    def __post_init__(self) -> None:
        check_word("recompute", self.recompute, RECOMPUTE)
        check_counts(data_parallel=self.data_parallel)
        if not is_count(self.zero, 0, MOST_ZERO):
            raise OptionError(f"zero = {shown(self.zero)}: must be an integer from 0 to {MOST_ZERO}")
        if self.optimizer is not None:
            check_word("optimizer", self.optimizer, tuple(OPTIMIZERS))
        if self.tied is not None:
            check_word("tied", self.tied, CHOICES)

    @property
    def given(self) -> dict[str, Any]:
        """The options that differ from their defaults."""
        return {name: getattr(self, name) for name in NAMES if getattr(self, name) != getattr(USUAL, name)}


NAMES = tuple(TrainingStates.__dataclass_fields__)
USUAL = TrainingStates()


def states_among(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a call that are fields of :class:`TrainingStates`."""
    return {name: options[name] for name in NAMES if name in options}


def as_trained(graph: Graph, options: Mapping[str, Any]) -> Graph:
    """Return a graph as the options of a call say that it is trained.

    If the call says how tied weights are trained, their gradients are exchanged as often as replicas exchange
    weights, see :func:`partitioner.workload.exchange.is_once_a_batch`; else as the graph says.

    Raises
    ------
    OptionError
        As for :func:`with_training_states`.

    Examples
    --------
    >>> from partitioner.workload.layer import Layer
    >>> layers = [Layer(name, 1.0, 2.0, parameters=4e6, shared={"word": 4e6}) for name in ("first", "last")]
    >>> graph = Graph.chain(layers, bandwidth=1e9)
    >>> as_trained(graph, {"tied": "copied", "schedule": "1f1b", "microbatches": 8}).cost.max()
    np.float64(1.0)
    """
    found = with_training_states(graph, **states_among(options))
    schedule: Any = options.get("schedule")
    microbatches: Any = options.get("microbatches")
    if found.extras.top.get("tied") is None or not is_count(microbatches):
        return found
    once = is_once_a_batch("ring", schedule, microbatches)
    return exchanged_once_in(found, microbatches if once else 1)


def require_decided(options: Mapping[str, Any]) -> None:
    """Refuse options of a call that only :func:`partitioner.solve` can decide.

    Raises
    ------
    OptionError
        If `tied` is ``"auto"``.

    Examples
    --------
    >>> require_decided({"tied": "copied"})
    """
    if options.get("tied") == AUTO:
        kinds = " or ".join(each for each in CHOICES if each != AUTO)
        raise OptionError(f"tied = {AUTO!r}: is for solve; here must be {kinds}")


def with_training_states(graph: Graph, **options: Any) -> Graph:
    """Return a graph for training in which layers compute again, and replicas divide, what the options say.

    A graph that has been made so already, as that of a config with these options, stays as it is.

    Parameters
    ----------
    graph
        The graph, whose memory is given by parts (``parameters``, ``gradients``, ``optimizer``,
        ``activations``).
    **options
        See :class:`TrainingStates`.

    Raises
    ------
    OptionError
        If an option is not in its range, or the graph does not say what it needs.

    Examples
    --------
    >>> from partitioner.workload.layer import Layer
    >>> layers = [Layer(name, 1.0, 2.0, activations=9e6, output=1e6) for name in "ab"]
    >>> graph = with_training_states(Graph.chain(layers, bandwidth=1e9), recompute="full")
    >>> graph.parts[3].tolist(), graph.time[0].tolist()
    ([0.0, 1000000.0, 0.0, 0.0], [1.0, 1.0, 3.0, 3.0])
    """
    asked = TrainingStates(**options).given
    done = {name: graph.extras.top[name] for name in NAMES if name in graph.extras.top}
    asked = {name: value for name, value in asked.items() if done.get(name) != value}
    tied = asked.pop("tied", AUTO)
    if tied != AUTO:
        graph = with_tied_weights(graph, tied)
    if not asked:
        return graph
    _check(graph, asked, done)
    states = TrainingStates(**{**states_among(done), **asked})
    made = _Made(graph)
    if "optimizer" in asked:
        made.optimizer(states.optimizer or "")
    if "recompute" in asked:
        made.recompute()
    if {"zero", "data_parallel"} & asked.keys():
        made.divide(states.zero, states.data_parallel)
    return made.graph(asked)


def _check(graph: Graph, asked: Mapping[str, Any], done: Mapping[str, Any]) -> None:
    """Refuse what the graph does not have, and what cannot be done a second time."""
    name, value = next(iter(asked.items()))
    words = f"{name} = {shown(value)}"
    if not graph.backward.any():
        raise OptionError(f"{words}: is for training, and the graph has no backward nodes")
    if graph.alternatives:
        raise OptionError(
            f"{words}: is not for a graph whose nodes have alternatives, which say it themselves"
        )
    changed = {
        name: done[name] for name in asked if done.get(name, getattr(USUAL, name)) != getattr(USUAL, name)
    }
    if changed or (done.get("zero") and asked):
        own = ", ".join(f"{name} = {shown(value)}" for name, value in (changed or done).items())
        raise OptionError(f"{words}: the graph has been made with {own}")
    again = asked.get("recompute", "full")
    if again != "full":
        raise OptionError(
            f"recompute = {again!r}: is for configs, whose operators are known; else must be 'full'"
        )
    needed = {"recompute": ACTIVATIONS, "optimizer": GRADIENTS, "zero": GRADIENTS}
    for option, part in needed.items():
        if option in asked and not graph.parts[part].any():
            rule = f"the graph does not say the {MEMORY_PARTS[part]} of its nodes"
            raise OptionError(f"{option} = {shown(asked[option])}: {rule}")


class _Made:
    """The parts, times and colours of a graph that is being made."""

    def __init__(self, graph: Graph) -> None:
        self.old = graph
        self.parts, self.time = graph.parts.copy(), graph.time.copy()
        self.together: list[Ints] = []

    def graph(self, asked: Mapping[str, Any]) -> Graph:
        """Return the graph, which says how it has been made."""
        old = self.old
        extras = Extras({**old.extras.top, **asked}, old.extras.nodes, old.extras.edges)
        found = replace(old, parts=self.parts, time=self.time, extras=extras)
        return with_classes_joined(found, self.together) if self.together else found

    def optimizer(self, name: str) -> None:
        """Set the optimizer's state by the number of parameters."""
        gradients, nodes = self.parts[GRADIENTS], self.old.extras.nodes
        told = np.array([node.get(COUNT, np.nan) for node in nodes] or [np.nan] * len(gradients), dtype=float)
        count = np.where(np.isfinite(told) & (gradients > 0), told, gradients / USUAL_WIDTH)
        narrow = gradients < COPY * count
        each = OPTIMIZERS[name] + COPY * (narrow & (name != "adam_8bit"))
        self.parts[OPTIMIZER] = count * each * (gradients > 0)

    def recompute(self) -> None:
        """Let layers keep what they receive, and run their forward nodes again in the backward pass."""
        per_time = bytes_per_time(self.old, "recompute = 'full'")
        for forward, backward in self._layers():
            kept = self.parts[ACTIVATIONS, forward].sum()
            received = _received(self.old, forward) * per_time
            if received < kept:
                self.parts[ACTIVATIONS, forward] = 0.0
                self.parts[ACTIVATIONS, forward[0]] = received
                self.parts[WORKSPACE, backward[0]] += kept - received
                self.time[:, backward[0]] += self.time[:, forward].sum(axis=1)
                self.together.append(np.concatenate([forward, backward]))

    def divide(self, zero: int, replicas: int) -> None:
        """Divide states among replicas; parameters that are divided are gathered while their layer runs."""
        whole = self.parts[[PARAMETERS, GRADIENTS]].copy()
        for part in (OPTIMIZER, GRADIENTS, PARAMETERS)[:zero]:
            self.parts[part] /= replicas
        if zero < MOST_ZERO or replicas == 1:
            return
        per_time = bytes_per_time(self.old, f"zero = {zero}") * replicas / (replicas - 1)
        for forward, backward in self._layers():
            both = np.concatenate([forward, backward])
            parameters, gradients = whole[:, both].sum(axis=1)
            self.parts[WORKSPACE, forward[0]] += parameters + gradients
            self._at_least(forward, parameters / per_time)
            self._at_least(backward, (parameters + gradients) / per_time)
            self.together.append(both)

    def _at_least(self, nodes: Ints, time: float) -> None:
        """Raise the time of the first of some nodes so that together they take at least a time."""
        self.time[:, nodes[0]] += np.maximum(time - self.time[:, nodes].sum(axis=1), 0.0)

    def _layers(self) -> Iterator[tuple[Ints, Ints]]:
        """Yield the forward and the backward nodes of each layer that has both."""
        layer, backward = self.old.layer, self.old.backward
        for number in range(len(self.old.layer_labels)):
            nodes = [np.flatnonzero((layer == number) & (backward == each)) for each in (False, True)]
            if len(nodes[0]) and len(nodes[1]):
                yield nodes[0], nodes[1]


def _received(graph: Graph, nodes: Ints) -> float:
    """Return the cost of the tensors that some forward nodes read from others, each counted once."""
    inside = np.zeros(len(graph), dtype=bool)
    inside[nodes] = True
    source, target = graph.edges.T
    read = inside[target] & ~inside[source] & ~graph.backward[source]
    total = 0.0
    for producer in np.unique(source[read]):
        costs = graph.cost[source == producer]
        own = graph.cost[read & (source == producer)]
        total += float(own[0] if (costs == costs[0]).all() else own.sum())
    return total
