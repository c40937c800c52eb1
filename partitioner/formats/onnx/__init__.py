"""Reading of ONNX models as graphs: sizes, arithmetic and times of their nodes; weights are not loaded."""
