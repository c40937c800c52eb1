"""The memory of layers as Baechi-PyTorch defines it: permanent and temporary (Section 1.3.1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from partitioner.base.argument_types import require_type
from partitioner.base.errors import Flaw, WorkloadError
from partitioner.workload.graph import Floats, Graph

OUTPUT, TEMPORARY = "outputBytes", "temporaryBytes"
RULE = "must be measured, as profile() does it"


@dataclass(frozen=True)
class LayerMemory:
    """The memory of a layer in bytes.

    Parameters
    ----------
    permanent
        In training the parameters, their gradients, and what is kept of the outputs for the backward pass;
        in inference the parameters.
    temporary
        In training the gradient of the outputs and what an operator needs only while it runs; in inference
        the outputs in its place.
    """

    permanent: float
    temporary: float


def layer_memory(graph: Graph) -> dict[str, LayerMemory]:
    """Return the permanent and the temporary memory of each layer of a profiled model.

    The paper keeps every output of a layer in training; counted here is what autograd really keeps, by the
    layer that keeps it. The gradient of the outputs is as large as the outputs. The optimizer's memory,
    which the paper leaves out, is not counted.

    Raises
    ------
    WorkloadError
        If the graph is not one that :func:`profile` has made.
    """
    require_type("graph", graph, Graph)
    outputs, temporary = (_field(graph, name) for name in (OUTPUT, TEMPORARY))
    parameters, gradients, _, kept, _ = graph.parts
    training = bool(graph.extras.top.get("training"))
    permanent = parameters + gradients + kept if training else parameters
    found = {}
    for code, label in enumerate(graph.layer_labels):
        inside = graph.layer == code
        passing = float(outputs[inside & ~graph.backward].sum())
        found[str(label)] = LayerMemory(
            float(permanent[inside].sum()), passing + float(temporary[inside].max())
        )
    return found


def _field(graph: Graph, name: str) -> Floats:
    """Return a measured field of every node."""
    values = [node.get(name) for node in graph.extras.nodes]
    bad = next((i for i, value in enumerate(values) if type(value) not in (int, float)), None)
    if not values or bad is not None or "training" not in graph.extras.top:
        raise WorkloadError([Flaw(f"node {graph.ids[bad or 0]}", name, "", RULE)])
    return np.array(values, dtype=np.float64)
