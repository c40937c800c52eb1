"""ONNX models: their graphs, and the pieces of a model file, one for each stage of a plan."""

from partitioner.formats.onnx.graph import graph_of
from partitioner.integrations.onnx.pieces import ModelPiece, write_pieces

__all__ = ["ModelPiece", "graph_of", "write_pieces"]
