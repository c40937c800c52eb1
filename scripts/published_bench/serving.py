"""Blocks of vLLM's cache, and buffers of llama.cpp, from config and memory alone."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import partitioner as pt
from published_bench.rows import Row
from published_bench.training import load

MIB, GIB, BLOCK = 2**20, 2**30, 16  # tokens of a block


def llama(hidden: int, inner: int, layers: int, heads: int, vocabulary: int) -> dict[str, Any]:
    """Return the config of a Llama with 8 heads of keys and values."""
    sizes = {"hidden_size": hidden, "intermediate_size": inner, "num_hidden_layers": layers}
    sizes |= {"num_attention_heads": heads, "num_key_value_heads": 8, "vocab_size": vocabulary}
    return {"model_type": "llama", "torch_dtype": "bfloat16", "tie_word_embeddings": False} | sizes


LLAMA_3_8B = llama(4096, 14336, 32, 32, 128256)
LLAMA_3_70B = llama(8192, 28672, 80, 64, 128256)
# vLLM's rows whose max_model_len is known, with its usual max_num_seqs: config, tokens, sequences
SERVED: Mapping[str, tuple[dict[str, Any], int, int]] = {
    "llama3.1-8b-3090-20k": (LLAMA_3_8B, 20000, 256),
    "llama3.1-8b-h100-8k": (LLAMA_3_8B, 8192, 256),
}
# What the others do not say. The log of the first has 9.37 GiB of activations in a run of 8,192 tokens; with
# 256 sequences they are 1.3 GiB.
NOT_SAID: Mapping[str, str] = {
    "llama3-8b-a100-40": "the number of sequences is not known",
    "llama3.1-70b-w8a8-1gpu": "the longest sequence is not known",
}
BUFFERS: Mapping[str, tuple[dict[str, Any], str, int]] = {  # of llama.cpp: config, type of weights, tokens
    "llamacpp-8b-f16": (LLAMA_3_8B, "float16", 8192),
    # to the last digit the weights of Llama 3 in q4_0; in q4_k_m, as its name says, it has 40,543 MiB
    "llamacpp-70b-q4km": (LLAMA_3_70B, "q4_0", 4096),
}
GIVEN: Mapping[str, Any] = {"device": "H100", "bandwidth": 25e9, "training": False}


def blocks(row: Row) -> float | None:
    """Return the blocks that fit, by the plan of one device; None if the row does not say enough."""
    if row.name not in SERVED:
        return None
    config, tokens, sequences = SERVED[row.name]
    total, part = map(float, re.findall(r"[\d.]+", row.hardware))
    server = {"profile_tokens": tokens, "profile_sequences": sequences, "memory": total * part * GIB}
    workload = load(config, sequence=BLOCK - 1, generate=1, **GIVEN, **server)
    return pt.solve(workload.graph, workload.devices, "capacity", schedule="inference").value


def buffer(row: Row) -> float:
    """Return a buffer of weights or of keys and values in MiB."""
    name, what, *_ = re.split(r"-(weights|kv)", row.name)
    config, dtype, tokens = BUFFERS[name]
    graph = load(config, sequence=tokens - 1, generate=1, weight_dtype=dtype, **GIVEN).graph
    return float((graph.parts[0] if what == "weights" else graph.cache).sum()) / MIB
