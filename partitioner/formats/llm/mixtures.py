"""The families whose feed-forward networks are mixtures of experts."""

from __future__ import annotations

from dataclasses import replace

from partitioner.formats.llm.config import Config
from partitioner.formats.llm.decoder import Attention, Decoder, DecoderBlock, Dense, Experts, Latent
from partitioner.formats.llm.shared_fields import attention, decoder, is_windowed

WHOLE_EVERY = 4  # every fourth block of Llama 4 sees all tokens, without turning queries and keys


def mixtral(config: Config) -> Decoder:
    """Mixtral: experts in every block."""
    count, top = config.count("num_local_experts"), config.count("num_experts_per_tok")
    experts = Experts(
        count, config.at_most("num_experts_per_tok", top, count), config.count("intermediate_size")
    )
    found = attention(config, window=config.optional("sliding_window"))
    return decoder(config, lambda i: DecoderBlock(found, experts))


def qwen2_moe(config: Config) -> Decoder:
    """Qwen1.5-MoE and Qwen2-MoE: a gated shared expert, biases of queries, keys and values."""
    shared = config.count("shared_expert_intermediate_size")
    return _qwen(config, attention(config, input_bias=True), shared)


def qwen3_moe(config: Config) -> Decoder:
    """Qwen3-MoE: norms of queries and keys, no shared expert."""
    bias = config.flag("attention_bias", False)
    return _qwen(config, attention(config, input_bias=bias, output_bias=bias, normed=True), 0)


def _qwen(config: Config, found: Attention, shared: int) -> Decoder:
    count, top = config.count("num_experts"), config.count("num_experts_per_tok")
    top = config.at_most("num_experts_per_tok", top, count)
    experts = Experts(count, top, config.count("moe_intermediate_size"), shared, bool(shared))
    dense = Dense(config.count("intermediate_size"))
    step = config.number("decoder_sparse_step", 1)
    alone = config.numbers("mlp_only_layers")

    def network(i: int) -> Dense | Experts:
        return dense if i in alone or (i + 1) % step else experts

    return decoder(config, lambda i: DecoderBlock(found, network(i)))


def llama4(config: Config) -> Decoder:
    """Llama 4: its text model, whose config is a part of the whole one's."""
    return llama4_text(config.part("text_config"))


def llama4_text(config: Config) -> Decoder:
    """Llama 4: a shared expert, dense blocks in between, three of four blocks see a chunk of the tokens."""
    top = config.count("num_experts_per_tok")
    count, width = config.count("num_local_experts"), config.count("intermediate_size")
    experts = Experts(count, config.at_most("num_experts_per_tok", top, count), width, shared=width)
    dense = Dense(config.number("intermediate_size_mlp", width))
    step, chunk = config.number("interleave_moe_layer_step", 1), config.optional("attention_chunk_size")
    bias = config.flag("attention_bias", False)

    def block(i: int) -> DecoderBlock:
        turned = (i + 1) % WHOLE_EVERY > 0
        found = attention(config, input_bias=bias, output_bias=bias, window=chunk if turned else None)
        return DecoderBlock(replace(found, rotary=turned), dense if (i + 1) % step else experts)

    return decoder(config, block)


def gpt_oss(config: Config) -> Decoder:
    """gpt-oss: biases of attention, router and experts, windows in every other block."""
    top, count = config.count("num_experts_per_tok"), config.count("num_local_experts")
    top = config.at_most("num_experts_per_tok", top, count)
    experts = Experts(count, top, config.count("intermediate_size"), router_bias=True, bias=True)
    bias, window = config.flag("attention_bias", True), config.optional("sliding_window")

    def block(i: int) -> DecoderBlock:
        here = window if is_windowed(config, i, 2) else None
        return DecoderBlock(attention(config, input_bias=bias, output_bias=bias, window=here), experts)

    return decoder(config, block)


def glm4_moe(config: Config) -> Decoder:
    """GLM-4.5: grouped-query attention in place of latent attention, else as DeepSeek-V3."""
    bias, normed = config.flag("attention_bias", False), config.flag("use_qk_norm", False)
    return _shared_experts(config, attention(config, input_bias=bias, normed=normed))


def deepseek(config: Config) -> Decoder:
    """DeepSeek-V2 and V3: latent attention, shared experts, dense first blocks, predictors."""
    return _shared_experts(config, _latent_attention(config))


def _shared_experts(config: Config, found: Attention) -> Decoder:
    """Return a decoder with shared experts, dense first blocks, and blocks that predict further tokens."""
    count, top = config.count("n_routed_experts"), config.count("num_experts_per_tok")
    width = config.count("moe_intermediate_size")
    experts = Experts(
        count,
        config.at_most("num_experts_per_tok", top, count),
        width,
        shared=width * config.number("n_shared_experts", 0),
        router_bias=config.data.get("topk_method") == "noaux_tc",
        reach=config.optional("topk_group") if config.number("n_group", 1) > 1 else None,
    )
    dense = Dense(config.count("intermediate_size"))
    first, step = config.number("first_k_dense_replace", 0), config.number("moe_layer_freq", 1)

    def block(i: int) -> DecoderBlock:
        return DecoderBlock(found, experts if i >= first and i % step == 0 else dense)

    made = decoder(config, block)
    further = config.number("num_nextn_predict_layers", 0)
    return made.changed(predictors=tuple(block(len(made.blocks) + i) for i in range(further)))


def _latent_attention(config: Config) -> Attention:
    heads, rope = config.count("num_attention_heads"), config.count("qk_rope_head_dim")
    bias = config.flag("attention_bias", False)
    return Attention(
        heads,
        heads,
        config.count("qk_nope_head_dim") + rope,
        config.count("v_head_dim"),
        input_bias=bias,
        output_bias=bias,
        latent=Latent(config.optional("q_lora_rank"), config.count("kv_lora_rank"), rope),
    )
