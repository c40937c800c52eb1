"""The shape of a decoder: the sizes that determine its parameters, arithmetic and cache."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True)
class Latent:
    """The sizes of multi-head latent attention: ranks of queries (None: not compressed), keys and values."""

    query_rank: int | None
    rank: int
    rope: int


@dataclass(frozen=True)
class Attention:
    """Attention of `heads` heads over `kv_heads` keys of `key` and values of `value` numbers each.

    `norms` numbers scale queries and keys; `window` is the number of latest tokens that a token sees, None
    for all of them; `rotary`: whether queries and keys are turned by their positions.
    """

    heads: int
    kv_heads: int
    key: int
    value: int
    input_bias: bool = False
    output_bias: bool = False
    norms: int = 0
    window: int | None = None
    latent: Latent | None = None
    rotary: bool = True

    @property
    def cache(self) -> int:
        """The numbers that the attention keeps of a token for later ones."""
        if self.latent is not None:
            return self.latent.rank + self.latent.rope
        return self.kv_heads * (self.key + self.value)


@dataclass(frozen=True)
class Dense:
    """A feed-forward network of `width` inner numbers, with a gate or without one."""

    width: int
    gated: bool = True
    bias: bool = False


@dataclass(frozen=True)
class Experts:
    """Gated experts of `width` inner numbers each, of which every token runs `top`.

    `shared` is the inner width of what every token runs in addition, `shared_gate` whether it has a gate of
    its own, `router_bias` whether the router has a bias. `over` devices hold equal parts of the experts,
    whose matrices may have biases. The router chooses experts of at most `reach` servers (None: of any).
    """

    count: int
    top: int
    width: int
    shared: int = 0
    shared_gate: bool = False
    router_bias: bool = False
    over: int = 1
    bias: bool = False
    reach: int | None = None


@dataclass(frozen=True)
class DecoderBlock:
    """A block of attention and a feed-forward network, with `norms` norms.

    `dropout`: whether numbers are dropped after both, and scores, when the model is trained.
    """

    attention: Attention
    network: Dense | Experts
    norms: int = 2
    norm_bias: bool = False
    dropout: bool = False


@dataclass(frozen=True)
class Names:
    """The paths of the modules of a decoder; an empty one: the model has no such module."""

    embedding: str = "model.embed_tokens"
    blocks: str = "model.layers"
    norm: str = "model.norm"
    head: str = "lm_head"
    positions: str = ""
    project_in: str = ""
    project_out: str = ""
    embedding_norm: str = ""


@dataclass(frozen=True)
class Decoder:
    """A decoder: embedding, blocks, a last norm, and a head.

    Parameters
    ----------
    vocabulary, hidden
        The number of tokens, and of numbers in a hidden state.
    blocks
        The blocks, first to last.
    tied
        Whether the head has the embedding's weights.
    names
        The paths of the modules.
    embedded
        Numbers of an embedding, if not `hidden`.
    positions
        The number of learned embeddings of positions.
    head_bias, norm_bias
        Whether the head and the last norm have a bias.
    predictors
        Blocks that predict further tokens; each has two more norms and a projection, and uses embedding and
        head.
    """

    vocabulary: int
    hidden: int
    blocks: tuple[DecoderBlock, ...]
    tied: bool = False
    names: Names = field(default_factory=Names)
    embedded: int | None = None
    positions: int = 0
    head_bias: bool = False
    norm_bias: bool = False
    predictors: tuple[DecoderBlock, ...] = ()

    def changed(self, **fields: Any) -> Decoder:
        """Return the decoder with other values of some fields."""
        return replace(self, **fields)
