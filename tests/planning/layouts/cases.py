"""Small random models, clusters and batches, and what they are asked for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from partitioner.base.clock import Clock
from partitioner.base.interruption import Interruption
from partitioner.estimation.named_devices import named_device
from partitioner.formats.hugging_face import decoder_of
from partitioner.planning.layouts.costs import ModelCosts
from partitioner.planning.layouts.layout import Cluster
from partitioner.planning.layouts.runtimes import RUNTIMES
from partitioner.planning.layouts.search import ClusterLayoutSearch
from partitioner.planning.layouts.space import LayoutSpace


def random_config(rng: np.random.Generator) -> dict[str, Any]:
    """Return the config of a small model, dense or with experts."""
    heads = int(rng.choice([2, 4, 8]))
    hidden = heads * int(rng.choice([16, 64, 128]))
    dense = {
        "model_type": "llama",
        "hidden_size": hidden,
        "intermediate_size": 4 * hidden,
        "num_hidden_layers": int(rng.integers(2, 9)),
        "num_attention_heads": heads,
        "num_key_value_heads": heads,
        "vocab_size": int(rng.choice([64, 1000, 32000])),
    }
    if rng.random() < 0.7:
        return dense
    return dense | {"model_type": "mixtral", "num_local_experts": 4, "num_experts_per_tok": 2}


def random_search(seed: int) -> tuple[LayoutSpace, ClusterLayoutSearch]:
    """Return a random space of layouts, and a search for its best ones, with memory that leaves some out."""
    rng = np.random.default_rng(seed)
    decoder = replace(decoder_of(random_config(rng), "config"), predictors=())
    gpus = int(rng.choice([1, 2, 4, 6, 8, 16]))
    memory = float(10 ** rng.uniform(6.5, 11))
    device = named_device(str(rng.choice(["A100-80", "H100", "RTX 4090"])))
    peer, network = 10 ** rng.uniform(9, 11.5), 10 ** rng.uniform(8.5, 10.5)
    cluster = Cluster(
        gpus, device, int(rng.choice([2, 4, 8])), peer, network, float(rng.choice([0, 1e-5])), memory
    )
    batch = int(rng.choice([4, 8, 12, 32]))
    runtime = RUNTIMES[str(rng.choice(list(RUNTIMES)))]
    costs = ModelCosts(decoder, cluster, int(rng.choice([16, 128, 1024])), "bfloat16")
    space = LayoutSpace(decoder, cluster, batch, runtime)
    return space, ClusterLayoutSearch(costs, batch, int(rng.integers(1, 6)), Clock(), Interruption())
