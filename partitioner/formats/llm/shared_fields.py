"""The fields that most families of decoders have in common."""

from __future__ import annotations

from collections.abc import Callable

from partitioner.formats.llm.config import Config
from partitioner.formats.llm.decoder import Attention, Decoder, DecoderBlock, Names

WINDOWED = "sliding_attention"


def attention(
    config: Config,
    *,
    input_bias: bool = False,
    output_bias: bool = False,
    normed: bool = False,
    window: int | None = None,
) -> Attention:
    """Return grouped-query attention; `normed`: queries and keys each have a norm of the size of a head."""
    heads = config.count("num_attention_heads")
    kv_heads = config.optional("num_key_value_heads") or heads
    size = config.optional("head_dim") or config.share("hidden_size", "num_attention_heads")
    return Attention(heads, kv_heads, size, size, input_bias, output_bias, 2 * size * normed, window)


def decoder(
    config: Config, block: Callable[[int], DecoderBlock], *, tied: bool = False, names: Names | None = None
) -> Decoder:
    """Return the decoder with the block that a function gives for each position."""
    layers = config.count("num_hidden_layers")
    return Decoder(
        config.count("vocab_size"),
        config.count("hidden_size"),
        tuple(block(i) for i in range(layers)),
        config.flag("tie_word_embeddings", tied),
        names or Names(),
    )


def is_windowed(config: Config, i: int, period: int) -> bool:
    """Whether block `i` sees a window only: as `layer_types` says, else all but every `period`-th do."""
    kinds = config.data.get("layer_types")
    if isinstance(kinds, list) and i < len(kinds):
        return bool(kinds[i] == WINDOWED)
    return (i + 1) % period > 0
