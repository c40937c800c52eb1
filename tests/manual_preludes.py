"""What the snippets of a page of the manual take as given, by page and by the number of the snippet."""

from __future__ import annotations

MODEL = """
import torch
from torch import nn

class MyTransformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(1000, 32)
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(32, 4, 64, batch_first=True) for _ in range(2))

    def forward(self, tokens):
        found = self.embedding(tokens)
        for layer in self.layers:
            found = layer(found)
        return found
"""
SCORED = """
sample, target, loss = tokens, torch.zeros(1, 128, 32), torch.nn.functional.mse_loss
plan = pt.solve(workload.graph, devices)
"""
STEP = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
args = (torch.randn(4, 8),)
"""
WITH_LOSS = """
loss, targets = nn.functional.mse_loss, (torch.randn(4, 4),)
graph = graph_of(
    model, args, device="H100", bandwidth=50e9, dtype="float32", training=True, loss=loss, targets=targets
)
"""
PIPELINE = """
import torch
from torch import nn

import partitioner as pt
from partitioner.integrations.torch import graph_of

torch.manual_seed(0)
torch.set_num_threads(1)
model, loss = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)), nn.functional.mse_loss
sample, wanted = torch.randn(2, 8), torch.randn(2, 4)
batch, target = sample.repeat(8, 1), wanted.repeat(8, 1)
given = {"loss": loss, "targets": (wanted,)}
graph = graph_of(model, (sample,), device="CPU", dtype="float32", bandwidth=4e9, training=True, **given)
devices = pt.Devices.accelerated(2, cpus=0)
names = list(graph.ids)
first = {name for name in names if name.split("/")[0] in ("linear", "relu")}
plan = {name: "accelerator0" if name in first else "accelerator1" for name in names}
"""
MEASURED = """
from partitioner.integrations.torch.pipelines import stages_of

from partitioner.integrations.torch.verification import fitting, measure_pipeline, measured

fitting.LEAST, measured.MOST_FOREIGN = 1, 2.0  # one run is enough, however busy the machine is
stages, target = stages_of(model, (sample,), graph, plan), wanted
workload, others = pt.Workload(graph, devices), []
short = {"schedule": "1f1b", "loss": loss, "target": target, "microbatches": (2, 4), "rounds": 1}
another_run = measure_pipeline(stages, (sample,), **short)
"""
GRAPH = """
import partitioner as pt

graph = pt.Graph.from_arrays({"gpu": [2.0, 8.0, 2.0]}, [(0, 1), (1, 2)], 0.1)
devices = pt.Devices((pt.DeviceKind("gpu", 2),))
"""
CONFIG = """
import json
from pathlib import Path

import partitioner as pt

config = {"model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 4}
config |= {"num_attention_heads": 4, "vocab_size": 100}
Path("config.json").write_text(json.dumps(config))
"""
LLAMA = """
import json
from pathlib import Path

config = {"model_type": "llama", "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32}
config |= {"num_attention_heads": 32, "num_key_value_heads": 32, "vocab_size": 32000}
Path("config.json").write_text(json.dumps(config))
"""
ONNX = """
import onnx
from tests.integrations.onnx.models import cnn

onnx.save(cnn("batch"), "model.onnx")
"""
SESSION = """
import numpy as np
import onnxruntime

read = onnx.load("model.onnx").graph.input[0]
sizes = [one.dim_value or 8 for one in read.type.tensor_type.shape.dim]
inputs = {read.name: np.zeros(sizes, np.float32)}
"""
PRELUDES = {
    ("torch.md", 0): MODEL,
    ("profiling.md", 0): MODEL,
    ("profiling.md", 2): SCORED,
    ("placing.md", 0): STEP,
    ("placing.md", 1): WITH_LOSS,
    ("pipelines.md", 1): PIPELINE,
    ("pipelines.md", 2): MEASURED,
    ("placers.md", 2): GRAPH,
    ("how_to/plan_a_cluster.md", 0): LLAMA,
    ("how_to/serve_on_a_pool.md", 0): LLAMA,
    ("graphs_in.md", 0): CONFIG,
    ("graphs_in.md", 1): ONNX,
    ("graphs_in.md", 2): SESSION,
}
