"""Seeded random graphs of operators, of the sizes that Celeritas (Xu et al., 2022, Table 2) measures on."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

import partitioner as pt

MEMORY = 16e9  # bytes of a device
NEED = 2.5  # devices whose memory a graph fills
MEAN_TIME = 0.05  # ms of an operator
SIZES: dict[str, tuple[int, float]] = {
    "Tensor Holography": (3810, 49.1),
    "Inception_V3": (6332, 33.1),
    "NMT": (25463, 18.6),
    "Transformer": (36352, 112.0),
}
TAKES_TIME = {"forward": 1.0, "gradient": 2.0, "update": 0.3, "parameter": 0.0, "constant": 0.0}
TAKES_MEMORY = {"forward": 1.0, "gradient": 0.5, "update": 4.0, "parameter": 4.0, "constant": 0.01}
SENDS = {"forward": 1.0, "gradient": 1.0, "update": 0.0, "parameter": 2.0, "constant": 0.05}
SPREAD = 1.5  # of the logarithms of times, memory and tensors: most are tiny


@dataclass
class _Draft:
    """Nodes in the order of the file, with their roles and colours, and the edges between them."""

    role: list[str] = field(default_factory=list)
    color: list[int | None] = field(default_factory=list)
    edges: list[tuple[int, int]] = field(default_factory=list)

    def add(self, role: str, inputs: list[int], color: int | None = None) -> int:
        """Append a node; returns its number."""
        self.role.append(role)
        self.color.append(color)
        self.edges += [(u, len(self.role) - 1) for u in dict.fromkeys(inputs)]
        return len(self.role) - 1


def operator_graph(nodes: int, seed: int, training: bool = True, ccr: float = 50.0) -> pt.Graph:
    """A network of blocks of parallel branches with long skip connections, each operator by itself.

    A third of the nodes are parameters and constants, which take no time; a parameter shares a colour
    class with its update. The backward pass mirrors the forward pass and reads what that has made.

    Parameters
    ----------
    nodes
        How many there are, at least 20.
    seed
        Of everything random.
    training
        With gradients and updates?
    ccr
        The sum of all edges' costs over the sum of all nodes' times.

    Returns
    -------
    Graph
        Times in ms on kind ``"accelerator"``, costs in ms, memory of 2.5 devices of `MEMORY` bytes.
    """
    rng = np.random.default_rng(seed)
    parameters = nodes // (9 if training else 6)
    constants = nodes // 3 - parameters
    operators = nodes - constants - parameters
    operators = (operators - parameters) // 2 if training else operators
    draft = _drafted(rng, _forward(rng, operators), parameters, constants, training)
    for _ in range(nodes - len(draft.role)):
        draft.add("update", [len(draft.role) - 1])
    return _costed(rng, draft, ccr)


def devices(count: int, memory: float | None = MEMORY) -> pt.Devices:
    """Equal accelerators."""
    return pt.Devices.accelerated(count, memory=memory)


def _forward(rng: np.random.Generator, count: int) -> list[list[int]]:
    """The inputs of every operator of the forward pass."""
    inputs: list[list[int]] = [[]]
    joints = [0]
    while len(inputs) < count:
        ends = []
        for _ in range(int(rng.integers(1, 7))):
            last = joints[-1]
            for _ in range(int(rng.integers(1, 6))):
                inputs.append([last])
                last = len(inputs) - 1
            ends.append(last)
        skipped = [int(rng.choice(joints))] if rng.random() < 0.3 else []
        inputs.append(ends + skipped)
        joints.append(len(inputs) - 1)
    return inputs[:count]


def _drafted(
    rng: np.random.Generator, inputs: list[list[int]], parameters: int, constants: int, training: bool
) -> _Draft:
    draft, count = _Draft(), len(inputs)
    weighted = set(rng.choice(count, parameters, replace=False).tolist())
    fixed = np.bincount(rng.integers(2 * count if training else count, size=constants), minlength=2 * count)
    weight: dict[int, int] = {}
    made: list[int] = []
    for i, before in enumerate(inputs):
        if i in weighted:
            weight[i] = draft.add("parameter", [], i if training else None)
        sources = [weight[i]] if i in weighted else []
        sources += [draft.add("constant", []) for _ in range(fixed[i])]
        made.append(draft.add("forward", [*(made[j] for j in before), *sources]))
    if training:
        _add_backward(draft, inputs, weight, made, fixed[count:].tolist())
    return draft


def _add_backward(
    draft: _Draft, inputs: list[list[int]], weight: dict[int, int], made: list[int], fixed: list[int]
) -> None:
    """For every operator, last to first, its gradient, and the update of its parameter."""
    arriving: list[list[int]] = [[] for _ in inputs]
    for i in reversed(range(len(inputs))):
        read = [made[j] for j in inputs[i]] or [made[i]]
        sources = [draft.add("constant", []) for _ in range(fixed[i])]
        sources += [weight[i]] if i in weight else []
        gradient = draft.add("gradient", [*(arriving[i] or [made[i]]), *read, *sources])
        for j in inputs[i]:
            arriving[j].append(gradient)
        if i in weight:
            draft.add("update", [gradient, weight[i]], i)


def _costed(rng: np.random.Generator, draft: _Draft, ccr: float) -> pt.Graph:
    """The draft with times, memory and costs, heavy-tailed and scaled to their sums."""
    n, edges = len(draft.role), np.array(draft.edges)
    time, size, sent = (
        np.array([share[role] for role in draft.role]) * rng.lognormal(0.0, SPREAD, n)
        for share in (TAKES_TIME, TAKES_MEMORY, SENDS)
    )
    time *= MEAN_TIME * n / time.sum()
    cost = sent[edges[:, 0]]
    first_backward = draft.role.index("gradient") if "gradient" in draft.role else n
    return pt.Graph.from_arrays(
        {"accelerator": time},
        draft.edges,
        cost * ccr * time.sum() / cost.sum(),
        size=size * NEED * MEMORY / size.sum(),
        backward=np.arange(n) >= first_backward,
        color=draft.color,
    )
