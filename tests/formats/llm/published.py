"""The sizes in the configs of published models, and what their publishers state about them.

`total` counts all parameters, a tied embedding once, `inner` those outside of embedding and head, `active`
those that a token uses, its embedding included.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Published:
    """A config and the published counts of its parameters."""

    config: dict[str, Any]
    total: float | None = None
    inner: float | None = None
    active: float | None = None
    tolerance: float = 0.005


FIELDS = (
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "vocab_size",
)


def sizes(*numbers: int) -> dict[str, Any]:
    """The fields that most configs have."""
    return dict(zip(FIELDS, numbers, strict=True))


def llama(*numbers: int, **more: Any) -> dict[str, Any]:
    return {"model_type": "llama", "tie_word_embeddings": False} | sizes(*numbers) | more


def gpt2(hidden: int, layers: int, heads: int) -> dict[str, Any]:
    fields = {"model_type": "gpt2", "n_embd": hidden, "n_layer": layers, "n_head": heads}
    return fields | {"n_positions": 1024, "vocab_size": 50257}


def neox(*numbers: int) -> dict[str, Any]:
    hidden, layers, heads, vocabulary = numbers
    more = {"model_type": "gpt_neox", "tie_word_embeddings": False}
    return sizes(hidden, 4 * hidden, layers, heads, heads, vocabulary) | more


def gemma2(*numbers: int, **more: Any) -> dict[str, Any]:
    return {"model_type": "gemma2", "sliding_window": 4096} | sizes(*numbers, 256000) | more


def qwen2(*numbers: int, tied: bool = False) -> dict[str, Any]:
    return {"model_type": "qwen2", "tie_word_embeddings": tied} | sizes(*numbers)


def opt(hidden: int, layers: int, heads: int) -> dict[str, Any]:
    fields = {"model_type": "opt", "hidden_size": hidden, "ffn_dim": 4 * hidden, "num_hidden_layers": layers}
    return fields | {"num_attention_heads": heads, "max_position_embeddings": 2048, "vocab_size": 50272}


def deepseek(model_type: str, *numbers: int, **more: Any) -> dict[str, Any]:
    latent = {"kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128}
    return {"model_type": model_type, "tie_word_embeddings": False} | sizes(*numbers) | latent | more


def gpt_oss(layers: int, experts: int) -> dict[str, Any]:
    fields = {"model_type": "gpt_oss", "tie_word_embeddings": False, "head_dim": 64, "sliding_window": 128}
    fields |= {"num_local_experts": experts, "num_experts_per_tok": 4, "attention_bias": True}
    return fields | sizes(2880, 2880, layers, 64, 8, 201088)


def llama4(experts: int, step: int) -> dict[str, Any]:
    fields = {"tie_word_embeddings": False, "head_dim": 128, "intermediate_size_mlp": 16384}
    fields |= {"num_local_experts": experts, "num_experts_per_tok": 1, "attention_chunk_size": 8192}
    text = fields | {"interleave_moe_layer_step": step} | sizes(5120, 8192, 48, 40, 8, 202048)
    return {"model_type": "llama4", "text_config": text}


DEEPSEEK_V3 = deepseek(
    "deepseek_v3", 7168, 18432, 61, 128, 128, 129280, q_lora_rank=1536, n_routed_experts=256,
    num_experts_per_tok=8, n_shared_experts=1, moe_intermediate_size=2048, first_k_dense_replace=3,
    moe_layer_freq=1, topk_method="noaux_tc", num_nextn_predict_layers=1,
)  # fmt: skip
LLAMA_70B = llama(8192, 28672, 80, 64, 8, 128256)
MODELS: dict[str, Published] = {
    # Meta: model pages of Llama 3.1 (8.03B, 70.6B) and the report (405B)
    "Llama-3.1-8B": Published(llama(4096, 14336, 32, 32, 8, 128256), 8.03e9),
    "Llama-3.1-70B": Published(LLAMA_70B, 70.6e9),
    "Llama-3.1-405B": Published(llama(16384, 53248, 126, 128, 8, 128256), 405e9),
    # Mistral AI: model page (7.24B); announcement of Mixtral (46.7B, of which a token uses 12.9B)
    "Mistral-7B": Published(llama(4096, 14336, 32, 32, 8, 32000, model_type="mistral"), 7.24e9),
    "Mixtral-8x7B": Published(
        llama(4096, 14336, 32, 32, 8, 32000, model_type="mixtral")
        | {"num_local_experts": 8, "num_experts_per_tok": 2}, 46.7e9, active=12.9e9,
    ),
    # Qwen: model cards of Qwen2.5 and Qwen3 (total, and without embeddings)
    "Qwen2.5-0.5B": Published(qwen2(896, 4864, 24, 14, 2, 151936, tied=True), 0.494e9, 0.358e9),
    "Qwen2.5-7B": Published(qwen2(3584, 18944, 28, 28, 4, 152064), 7.61e9, 6.53e9),
    "Qwen2.5-72B": Published(qwen2(8192, 29568, 80, 64, 8, 152064), 72.7e9, 70.0e9),
    "Qwen3-8B": Published(
        {"model_type": "qwen3", "tie_word_embeddings": False, "head_dim": 128}
        | sizes(4096, 12288, 36, 32, 8, 151936), 8.2e9, 6.95e9,
    ),
    "Qwen3-30B-A3B": Published(
        {"model_type": "qwen3_moe", "tie_word_embeddings": False, "head_dim": 128, "num_experts": 128,
         "num_experts_per_tok": 8, "moe_intermediate_size": 768, "mlp_only_layers": []}
        | sizes(2048, 6144, 48, 32, 4, 151936), 30.5e9, 29.9e9,
    ),
    # Google: report on Gemma 2, non-embedding parameters, to the last one
    "Gemma-2-2B": Published(gemma2(2304, 9216, 26, 8, 4, head_dim=256), inner=2_024_517_888, tolerance=0),
    "Gemma-2-9B": Published(gemma2(3584, 14336, 42, 16, 8, head_dim=256), inner=8_324_201_984, tolerance=0),
    "Gemma-2-27B": Published(
        gemma2(4608, 36864, 46, 32, 16, head_dim=128), inner=26_047_480_320, tolerance=0
    ),
    # OpenAI: names of the released sizes of GPT-2
    "GPT-2": Published(gpt2(768, 12, 12), 124e6),
    "GPT-2 medium": Published(gpt2(1024, 24, 16), 355e6),
    "GPT-2 large": Published(gpt2(1280, 36, 20), 774e6),
    "GPT-2 XL": Published(gpt2(1600, 48, 25), 1558e6),
    # EleutherAI: model cards, to the last parameter (of Pythia without embedding and head)
    "GPT-NeoX-20B": Published(neox(6144, 44, 64, 50432), 20_554_567_680, tolerance=0),
    "Pythia-70M": Published(neox(512, 6, 8, 50304), inner=18_915_328, tolerance=0),
    "Pythia-410M": Published(neox(1024, 24, 16, 50304), inner=302_311_424, tolerance=0),
    "Pythia-2.8B": Published(neox(2560, 32, 32, 50304), inner=2_517_652_480, tolerance=0),
    # Meta: names of the released sizes of OPT
    "OPT-30B": Published(opt(7168, 48, 56), 30e9),
    "OPT-66B": Published(opt(9216, 64, 72), 66e9),
    # Microsoft: model page of Phi-2
    "Phi-2": Published(
        {"model_type": "phi", "tie_word_embeddings": False} | sizes(2560, 10240, 32, 32, 32, 51200), 2.78e9
    ),
    # DeepSeek: report on V2 (V2-Lite: 15.7B, of which a token uses 2.4B), notes on the weights of V3
    # (671B, 36.7B; 685B with the predictor, its copies of embedding and head included)
    "DeepSeek-V2-Lite": Published(
        deepseek(
            "deepseek_v2", 2048, 10944, 27, 16, 16, 102400, q_lora_rank=None, n_routed_experts=64,
            num_experts_per_tok=6, n_shared_experts=2, moe_intermediate_size=1408, first_k_dense_replace=1,
        ), 15.7e9,
    ),
    # BigScience: model card, to the last parameter
    "BLOOM": Published(
        {"model_type": "bloom", "hidden_size": 14336, "n_layer": 70, "n_head": 112, "vocab_size": 250880},
        176_247_271_424, tolerance=0,
    ),
    # NVIDIA: report on Nemotron-4 340B (9.4B of embedding and head, 331.6B others)
    "Nemotron-4-340B": Published(
        {"model_type": "nemotron", "tie_word_embeddings": False} | sizes(18432, 73728, 96, 96, 8, 256000),
        341.0e9, 331.6e9,
    ),
    # Zhipu AI: model pages of GLM-4-9B-0414 (9.4B) and GLM-4.5 (355B, of which a token uses 32B)
    "GLM-4-9B-0414": Published(
        {"model_type": "glm4", "tie_word_embeddings": False, "head_dim": 128}
        | sizes(4096, 13696, 40, 32, 2, 151552), 9.4e9,
    ),
    "GLM-4.5": Published(
        {"model_type": "glm4_moe", "tie_word_embeddings": False, "head_dim": 128, "attention_bias": True,
         "use_qk_norm": True, "n_routed_experts": 160, "num_experts_per_tok": 8, "n_shared_experts": 1,
         "moe_intermediate_size": 1536, "first_k_dense_replace": 3}
        | sizes(5120, 12288, 92, 96, 8, 151552), 355e9, tolerance=0.01,
    ),
    # OpenAI: model card of gpt-oss (116.83B and 20.91B, of which a token uses 5.13B and 3.61B without its
    # embedding of 0.58B)
    "gpt-oss-120b": Published(gpt_oss(36, 128), 116.83e9, active=5.71e9),
    "gpt-oss-20b": Published(gpt_oss(24, 32), 20.91e9, active=4.19e9),
    # Meta: model pages of Llama 4 (109B with the vision encoder of 0.9B, and 400B; a token uses 17B)
    "Llama-4-Scout": Published(llama4(16, 1), 109e9 - 0.9e9, active=17e9, tolerance=0.011),
    "Llama-4-Maverick": Published(llama4(128, 2), 400e9, active=17e9, tolerance=0.011),
    "DeepSeek-V3": Published(DEEPSEEK_V3 | {"num_nextn_predict_layers": 0}, 671e9),
}  # fmt: skip
