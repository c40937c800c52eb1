"""Models of torch as graphs, captured or measured, and plans run; torch is imported when one is asked for."""

from partitioner.integrations.torch.graphs.graph import graph_of
from partitioner.integrations.torch.placing.place import place
from partitioner.integrations.torch.profiling.layer_memory import LayerMemory, layer_memory
from partitioner.integrations.torch.profiling.links import links
from partitioner.integrations.torch.profiling.profile import profile

__all__ = ["LayerMemory", "graph_of", "layer_memory", "links", "place", "profile"]
