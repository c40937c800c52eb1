"""The decoder families that are known, by ``model_type``: which fields of a config say what."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from partitioner.formats.llm.config import Config
from partitioner.formats.llm.decoder import Attention, Decoder, DecoderBlock, Dense, Names
from partitioner.formats.llm.mixtures import (
    deepseek,
    glm4_moe,
    gpt_oss,
    llama4,
    llama4_text,
    mixtral,
    qwen2_moe,
    qwen3_moe,
)
from partitioner.formats.llm.shared_fields import attention, decoder, is_windowed


def llama(config: Config) -> Decoder:
    """Llama, and Phi-3 and Mistral, which have the same parts: no biases by default, gated networks."""
    bias = config.flag("attention_bias", False)
    found = attention(config, input_bias=bias, output_bias=bias, window=config.optional("sliding_window"))
    network = Dense(config.count("intermediate_size"), bias=config.flag("mlp_bias", False))
    return decoder(config, lambda i: DecoderBlock(found, network))


def qwen2(config: Config) -> Decoder:
    """Qwen2 and Qwen2.5: biases of queries, keys and values."""
    network = Dense(config.count("intermediate_size"))
    return decoder(config, lambda i: DecoderBlock(_qwen_attention(config, i, input_bias=True), network))


def qwen3(config: Config) -> Decoder:
    """Qwen3: norms of queries and keys."""
    bias = config.flag("attention_bias", False)
    network = Dense(config.count("intermediate_size"))
    return decoder(
        config,
        lambda i: DecoderBlock(
            _qwen_attention(config, i, input_bias=bias, output_bias=bias, normed=True), network
        ),
    )


def _qwen_attention(config: Config, i: int, **given: bool) -> Attention:
    window = config.optional("sliding_window") if config.flag("use_sliding_window", False) else None
    start = config.number("max_window_layers", 0)
    return attention(config, window=window if i >= start else None, **given)


def gemma(config: Config) -> Decoder:
    """Gemma: heads of a size of their own, tied embeddings."""
    bias = config.flag("attention_bias", False)
    found = attention(config, input_bias=bias, output_bias=bias)
    network = Dense(config.count("intermediate_size"))
    return decoder(config, lambda i: DecoderBlock(found, network), tied=True)


def gemma2(config: Config) -> Decoder:
    """Gemma 2: four norms a block, windows in every other block."""
    return _gemma_later(config, period=2, normed=False)


def gemma3(config: Config) -> Decoder:
    """Gemma 3, its text model: norms of queries and keys too, windows in all but every sixth block."""
    return _gemma_later(config, period=config.number("sliding_window_pattern", 6), normed=True)


def _gemma_later(config: Config, period: int, normed: bool) -> Decoder:
    bias, window = config.flag("attention_bias", False), config.optional("sliding_window")
    network = Dense(config.count("intermediate_size"))

    def block(i: int) -> DecoderBlock:
        here = window if is_windowed(config, i, period) else None
        found = attention(config, input_bias=bias, output_bias=bias, normed=normed, window=here)
        return DecoderBlock(found, network, norms=4)

    return decoder(config, block, tied=True)


def phi(config: Config) -> Decoder:
    """Phi-1 and Phi-2: one norm a block, biases everywhere, the head included."""
    found = attention(config, input_bias=True, output_bias=True)
    network = Dense(config.count("intermediate_size"), gated=False, bias=True)
    names = Names(norm="model.final_layernorm")
    made = decoder(config, lambda i: DecoderBlock(found, network, norms=1, norm_bias=True), names=names)
    return made.changed(norm_bias=True, head_bias=True)


def gpt2(config: Config) -> Decoder:
    """GPT-2: learned positions, biases, dropout, tied embeddings."""
    hidden, heads = config.count("n_embd"), config.count("n_head")
    width = config.optional("n_inner") or 4 * hidden
    found = Attention(
        heads, heads, config.share("n_embd", "n_head"), hidden // heads, True, True, rotary=False
    )
    network, dropout = Dense(width, gated=False, bias=True), config.drops("resid_pdrop", 0.1)
    block = DecoderBlock(found, network, norm_bias=True, dropout=dropout)
    names = Names("transformer.wte", "transformer.h", "transformer.ln_f", positions="transformer.wpe")
    return Decoder(
        config.count("vocab_size"),
        hidden,
        (block,) * config.count("n_layer"),
        config.flag("tie_word_embeddings", True),
        names,
        positions=config.count("n_positions"),
        norm_bias=True,
    )


def gpt_neox(config: Config) -> Decoder:
    """GPT-NeoX and Pythia: biases except in the head."""
    bias = config.flag("attention_bias", True)
    found = attention(config, input_bias=bias, output_bias=bias)
    network = Dense(config.count("intermediate_size"), gated=False, bias=True)
    names = Names("gpt_neox.embed_in", "gpt_neox.layers", "gpt_neox.final_layer_norm", "embed_out")
    return decoder(config, lambda i: DecoderBlock(found, network, norm_bias=True), names=names).changed(
        norm_bias=True
    )


def opt(config: Config) -> Decoder:
    """OPT: learned positions, biases, tied embeddings, which may be narrower than the hidden states."""
    hidden, bias = config.count("hidden_size"), config.flag("enable_bias", True)
    found = replace(attention(config, input_bias=bias, output_bias=bias), rotary=False)
    network = Dense(config.count("ffn_dim"), gated=False, bias=bias)
    embedded = config.number("word_embed_proj_dim", hidden)
    root, narrow = "model.decoder", embedded != hidden
    last = config.flag("do_layer_norm_before", True) and not config.flag("_remove_final_layer_norm", False)
    names = Names(
        f"{root}.embed_tokens",
        f"{root}.layers",
        f"{root}.final_layer_norm" if last else "",
        positions=f"{root}.embed_positions",
        project_in=f"{root}.project_in" if narrow else "",
        project_out=f"{root}.project_out" if narrow else "",
    )
    block = DecoderBlock(found, network, norm_bias=True, dropout=config.drops("dropout", 0.1))
    made = decoder(config, lambda i: block, tied=True, names=names)
    positions = config.count("max_position_embeddings") + 2  # the table has two rows more
    return made.changed(norm_bias=True, positions=positions, embedded=embedded)


def falcon(config: Config) -> Decoder:
    """Falcon: few keys and values, attention and network side by side."""
    hidden, bias = config.count("hidden_size"), config.flag("bias", False)
    later, parallel = config.flag("new_decoder_architecture", False), config.flag("parallel_attn", True)
    layers = config.first("num_hidden_layers", "n_layer")
    heads = config.first("num_attention_heads", "n_head")
    kv_heads = 1 if config.flag("multi_query", True) else heads
    if later:
        kv_heads = config.first("num_kv_heads", "n_head_kv")
    found = Attention(heads, kv_heads, hidden // heads, hidden // heads, bias, bias)
    norms = (config.optional("num_ln_in_parallel_attn") or 2) if later else 1 if parallel else 2
    width = config.optional("ffn_hidden_size") or 4 * hidden
    block = DecoderBlock(found, Dense(width, gated=False, bias=bias), norms=norms, norm_bias=True)
    names = Names("transformer.word_embeddings", "transformer.h", "transformer.ln_f")
    tied = config.flag("tie_word_embeddings", True)
    return Decoder(config.count("vocab_size"), hidden, (block,) * layers, tied, names, norm_bias=True)


def bloom(config: Config) -> Decoder:
    """BLOOM: biases, a norm after the tied embedding, scores that fall with distance."""
    hidden, heads = config.first("hidden_size", "n_embed"), config.first("n_head", "num_attention_heads")
    if hidden % heads:
        config.refuse("hidden_size", hidden, f"must be a multiple of n_head ({heads})")
    found = Attention(heads, heads, hidden // heads, hidden // heads, True, True, rotary=False)
    block = DecoderBlock(found, Dense(4 * hidden, gated=False, bias=True), norm_bias=True)
    embedding = "transformer.word_embeddings"
    names = Names(embedding, "transformer.h", "transformer.ln_f", embedding_norm=f"{embedding}_layernorm")
    layers = config.first("n_layer", "num_hidden_layers")
    tied = config.flag("tie_word_embeddings", True)
    return Decoder(config.count("vocab_size"), hidden, (block,) * layers, tied, names, norm_bias=True)


def glm4(config: Config) -> Decoder:
    """GLM-4 of 2025: four norms a block."""
    found = attention(config, input_bias=config.flag("attention_bias", False))
    network = Dense(config.count("intermediate_size"))
    return decoder(config, lambda i: DecoderBlock(found, network, norms=4))


def nemotron(config: Config) -> Decoder:
    """Nemotron-4 and Minitron: networks without a gate, norms with a bias."""
    bias = config.flag("attention_bias", False)
    found = attention(config, input_bias=bias, output_bias=bias)
    network = Dense(config.count("intermediate_size"), gated=False, bias=config.flag("mlp_bias", False))
    made = decoder(config, lambda i: DecoderBlock(found, network, norm_bias=True))
    return made.changed(norm_bias=True)


FAMILIES: dict[str, Callable[[Config], Decoder]] = {
    "llama": llama,
    "mistral": llama,
    "phi3": llama,
    "qwen2": qwen2,
    "qwen3": qwen3,
    "gemma": gemma,
    "gemma2": gemma2,
    "gemma3_text": gemma3,
    "phi": phi,
    "gpt2": gpt2,
    "gpt_neox": gpt_neox,
    "opt": opt,
    "falcon": falcon,
    "bloom": bloom,
    "glm4": glm4,
    "nemotron": nemotron,
    "mixtral": mixtral,
    "qwen2_moe": qwen2_moe,
    "qwen3_moe": qwen3_moe,
    "deepseek_v2": deepseek,
    "deepseek_v3": deepseek,
    "glm4_moe": glm4_moe,
    "gpt_oss": gpt_oss,
    "llama4": llama4,
    "llama4_text": llama4_text,
}
