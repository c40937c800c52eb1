"""Seeded random graphs for measuring scale: many ideals, or many operators."""

from dataclasses import replace
from typing import Any

import numpy as np

from architectures.builder import GraphBuilder
from architectures.cost_model import A100_80GB, HOST, V100_16GB
from architectures.document import Machine, Options
from architectures.emit import emit
from architectures.gpt import gpt_block
from architectures.operators import Operator, Times
from architectures.primitives import embedding, source
from architectures.transformer import Shape

BLOCKS, BRANCHES, DEPTH = 6, 8, 4
MEGABYTE = 1e6
TIME_SPREAD = 0.1
WIDTHS = (1024, 1536, 2048)
HIDDEN, HEADS, SEQUENCE, VOCABULARY = 512, 8, 128, 32000


def branch_ideals(blocks: int, branches: int, depth: int) -> int:
    """Return the number of ideals of :func:`branches_instance`.

    Parallel chains of ``depth`` nodes have ``(depth + 1) ** branches`` ideals, since each
    chain is cut at one of ``depth + 1`` places. Graphs in series add up, less one for the
    cut that both count; a single node has two ideals. An input and ``blocks`` times
    chains and a joint make ``2 + blocks * (depth + 1) ** branches``. The defaults of 6
    blocks of 8 chains of 4 nodes give 2,343,752 ideals on 199 nodes.
    """
    cuts: int = (depth + 1) ** branches
    return 2 + blocks * cuts


def branches_instance(
    seed: int,
    accelerators: int = 6,
    blocks: int = BLOCKS,
    branches: int = BRANCHES,
    depth: int = DEPTH,
) -> dict[str, Any]:
    """Return an inference graph of blocks of parallel chains that a joint ends.

    Parameters
    ----------
    seed : int
        Seed of the times and sizes.
    accelerators : int, optional
        Number of accelerators.
    blocks, branches, depth : int, optional
        Blocks, chains per block, and nodes per chain.

    Returns
    -------
    dict
        Object in the instance format.
    """
    generator = np.random.default_rng(seed)
    operators = [_random_operator(generator, "input", 0, ())]
    for block in range(1, blocks + 1):
        joint, ends = len(operators) - 1, []
        for branch in range(branches):
            previous = joint
            for step in range(depth):
                name = f"block{block}/branch{branch + 1}/unit{step + 1}"
                operators.append(_random_operator(generator, name, block, (previous,)))
                previous = len(operators) - 1
            ends.append(previous)
        operators.append(_random_operator(generator, f"block{block}/joint", block, tuple(ends)))
    ideals = branch_ideals(blocks, branches, depth)
    description = (
        f"Random multi-branch network, inference, {blocks} blocks of {branches} chains of "
        f"{depth} nodes, {ideals} ideals, seed {seed}."
    )
    machine = Machine(V100_16GB, accelerators, 1)
    return emit(operators, machine, Options(), description)


def _random_operator(
    generator: np.random.Generator, name: str, layer: int, inputs: tuple[int, ...]
) -> Operator:
    """Return an operator of some milliseconds, 5 to 20 times slower on the host."""
    time = float(generator.lognormal(0.5, 0.6))
    forward = Times(time, time * float(generator.uniform(5, 20)))
    output = MEGABYTE * float(generator.uniform(1, 8))
    parameters = MEGABYTE * float(generator.uniform(5, 50))
    return Operator(name, layer, inputs, (), output, output, parameters, forward, forward, gradient=False)


def operators_instance(nodes: int, seed: int, accelerators: int = 16) -> dict[str, Any]:
    """Return the inference operator graph of a very deep transformer.

    Blocks draw the width of their feed-forward part, and times vary by some percent. The
    last block may be cut short, in order to reach the number of nodes exactly.

    Parameters
    ----------
    nodes : int
        Number of operators, at least 3.
    seed : int
        Seed of the widths and times.
    accelerators : int, optional
        Number of accelerators.

    Returns
    -------
    dict
        Object in the instance format.
    """
    generator = np.random.default_rng(seed)
    graph = GraphBuilder(A100_80GB, HOST)
    shape = Shape(0, HIDDEN, HEADS, WIDTHS[0], VOCABULARY, 1, SEQUENCE)
    ids = source(graph, "token_ids", shape.tokens)
    graph.layer("token_embedding")
    hidden = embedding(graph, ids, VOCABULARY, HIDDEN, shape.tokens)
    block = 0
    while len(graph.operators) < nodes:
        wide = replace(shape, feed_forward=int(generator.choice(WIDTHS)))
        hidden = gpt_block(graph, wide, f"block{block:05d}", hidden, training=False)
        block += 1
    operators = [_varied(generator, operator) for operator in graph.operators[:nodes]]
    description = (
        f"Random deep transformer, inference, {nodes} operators, hidden size {HIDDEN}, "
        f"{shape.sequence} tokens, seed {seed}."
    )
    options = Options(operators=True)
    return emit(operators, Machine(A100_80GB, accelerators, 1), options, description)


def _varied(generator: np.random.Generator, operator: Operator) -> Operator:
    factor = float(generator.lognormal(0.0, TIME_SPREAD))
    return replace(operator, forward=operator.forward.scaled(factor))
