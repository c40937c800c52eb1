"""The models: small configurations with random weights, each with a call for a microbatch of two samples."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

SAMPLES = 2
WORDS, LENGTH = 128, 16


@dataclass(frozen=True)
class Call:
    """A model with the arguments of a call for one microbatch.

    Parameters
    ----------
    model
        A ``torch.nn.Module`` in evaluation mode, so that nothing is drawn at random.
    args, kwargs
        The arguments; every tensor's first dimension is that of the samples.
    """

    model: Any
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)


Maker = Callable[[], Call]
MODELS: dict[str, tuple[str, Maker]] = {}


def entry(library: str, name: str) -> Callable[[Maker], Maker]:
    """Enter a function that makes a model under a name and the library that it is of."""

    def entered(maker: Maker) -> Maker:
        MODELS[name] = library, maker
        return maker

    return entered


def made(name: str) -> Call:
    """Return the model of a name, always with the same weights."""
    torch.manual_seed(0)
    call = MODELS[name][1]()
    call.model.eval()
    return call


def loss(output: Any, target: Any) -> Any:
    """Return a scalar of all floating-point tensors that a model returns, weighted by a target's mean."""
    leaves = [
        one
        for one in torch.utils._pytree.tree_leaves(output)
        if isinstance(one, torch.Tensor) and one.is_floating_point() and one.requires_grad
    ]
    return sum((one * one).mean() for one in leaves) * target.mean()


def images(size: int = 32, channels: int = 3) -> Any:
    """Return a microbatch of images."""
    return torch.randn(SAMPLES, channels, size, size)


def tokens(length: int = LENGTH) -> Any:
    """Return a microbatch of texts."""
    return torch.randint(3, WORDS, (SAMPLES, length))


# ---- torch alone


class Recurrent(nn.Module):  # type: ignore[misc]
    """An embedding, layers of a recurrent kind and a head."""

    def __init__(self, kind: Any) -> None:
        super().__init__()
        self.embedding = nn.Embedding(WORDS, 32)
        self.layers = nn.ModuleList(kind(32, 32, batch_first=True) for _ in range(4))
        self.head = nn.Linear(32, WORDS)

    def forward(self, x: Any) -> Any:
        """Return the scores of each word."""
        hidden = self.embedding(x)
        for layer in self.layers:
            hidden = hidden + layer(hidden)[0]
        return self.head(hidden)


@entry("torch", "LSTM")
def lstm() -> Call:
    """Return a recurrent model."""
    return Call(Recurrent(nn.LSTM), (tokens(),))


@entry("torch", "GRU")
def gru() -> Call:
    """Return a recurrent model."""
    return Call(Recurrent(nn.GRU), (tokens(),))


@entry("torch", "Transformer")
def transformer() -> Call:
    """Return torch's own encoder and decoder."""
    model = nn.Transformer(32, 2, 2, 2, 64, batch_first=True)
    return Call(model, (torch.randn(SAMPLES, LENGTH, 32), torch.randn(SAMPLES, LENGTH, 32)))


# ---- torchvision


def _torchvision() -> Any:
    """Return the package; its wheel for CUDA lacks operators that its import asks for."""
    try:
        import torchvision
    except RuntimeError:
        library = torch.library.Library("torchvision", "FRAGMENT")
        for name in ("nms", "qnms"):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        _torchvision.kept = library  # type: ignore[attr-defined]
        import torchvision
    return torchvision.models


def _plain(name: str, size: int = 64, **options: Any) -> None:
    @entry("torchvision", name)
    def make() -> Call:
        return Call(getattr(_torchvision(), name)(weights=None, num_classes=10, **options), (images(size),))


_plain("resnet18")
_plain("mobilenet_v2")
_plain("mobilenet_v3_small")
_plain("efficientnet_b0")
_plain("shufflenet_v2_x0_5")
_plain("squeezenet1_1")
_plain("regnet_y_400mf")
_plain("mnasnet0_5")
_plain("googlenet", aux_logits=False, init_weights=False)


_plain("inception_v3", 96, aux_logits=False, init_weights=False)


@entry("torchvision", "maxvit")
def maxvit() -> Call:
    """Return convolutions and attention over windows and grids in turn."""
    options = {"input_size": (32, 32), "stem_channels": 16, "partition_size": 2, "head_dim": 8}
    blocks = {"block_channels": [16, 32], "block_layers": [1, 1], "stochastic_depth_prob": 0.0}
    return Call(_torchvision().MaxVit(**options, **blocks, num_classes=5), (images(32),))


@entry("torchvision", "r3d_18")
def video() -> Call:
    """Return a network of convolutions over frames."""
    return Call(_torchvision().video.r3d_18(weights=None, num_classes=5), (torch.randn(2, 3, 4, 16, 16),))


@entry("torchvision", "densenet")
def densenet() -> Call:
    """Return a network each layer of which reads all before it."""
    kind = _torchvision().densenet.DenseNet
    return Call(kind(8, (3, 3, 3), 16, num_classes=10), (images(),))


@entry("torchvision", "vision_transformer")
def vision_transformer() -> Call:
    """Return a transformer of image patches."""
    kind = _torchvision().vision_transformer.VisionTransformer
    return Call(kind(32, 8, 4, 2, 32, 64, num_classes=10), (images(),))


@entry("torchvision", "swin_transformer")
def swin_transformer() -> Call:
    """Return a transformer of shifted windows."""
    kind = _torchvision().swin_transformer.SwinTransformer
    return Call(kind([4, 4], 16, [2, 2], [2, 2], [4, 4], num_classes=10), (images(),))


@entry("torchvision", "convnext")
def convnext() -> Call:
    """Return a convolutional network with layer norms on permuted tensors."""
    module = _torchvision().convnext
    settings = [module.CNBlockConfig(16, 32, 2), module.CNBlockConfig(32, None, 2)]
    return Call(module.ConvNeXt(settings, num_classes=10), (images(),))


@entry("torchvision", "fcn")
def fcn() -> Call:
    """Return a segmentation network, which returns a dict."""
    return Call(
        _torchvision().segmentation.lraspp_mobilenet_v3_large(
            weights=None, weights_backbone=None, num_classes=5
        ),
        (images(64),),
    )


# ---- timm


def _timm(name: str, size: int = 64, **options: Any) -> None:
    @entry("timm", name)
    def make() -> Call:
        _torchvision()
        import timm

        return Call(timm.create_model(name, pretrained=False, num_classes=10, **options), (images(size),))


SMALL = {"img_size": 32, "patch_size": 8, "embed_dim": 32, "depth": 4}
_timm("deit_tiny_patch16_224", 32, **SMALL, num_heads=2)
_timm("beit_base_patch16_224", 32, **SMALL, num_heads=2)
_timm("mobilevit_xxs")
_timm("ghostnet_050")
_timm("levit_128s", 224)
_timm("poolformer_s12")
_timm("resnetv2_50", 64, layers=(1, 1, 1, 1))
_timm("efficientvit_b0")
_timm("xcit_nano_12_p16_224", 32, img_size=32, patch_size=8, embed_dim=32, depth=3, num_heads=2)
_timm("hrnet_w18_small")
_timm("res2net50_14w_8s")
_timm("volo_d1_224", 64, img_size=64)
_timm("focalnet_tiny_srf")


# ---- transformers


def _config(name: str, **options: Any) -> Any:
    _torchvision_if_there()
    import transformers

    return getattr(transformers, name)(**options)


def _torchvision_if_there() -> None:
    """Import torchvision before transformers does, so that the latter finds it whole."""
    try:
        _torchvision()
    except ImportError:
        return


def _model(name: str, config: Any) -> Any:
    import transformers

    return getattr(transformers, name)(config)


WIDTHS = {
    "vocab_size": WORDS,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "max_position_embeddings": 64,
}
GROUPED = WIDTHS | {"num_key_value_heads": 2}
ENDS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}


def _text(name: str, config: str, model: str, **options: Any) -> None:
    @entry("transformers", name)
    def make() -> Call:
        return Call(_model(model, _config(config, **options)), (tokens(),))


_text("Llama", "LlamaConfig", "LlamaForCausalLM", **GROUPED)
_text("Mistral", "MistralConfig", "MistralForCausalLM", **GROUPED)
_text("Qwen2", "Qwen2Config", "Qwen2ForCausalLM", **GROUPED)
_text("Qwen3", "Qwen3Config", "Qwen3ForCausalLM", **GROUPED, head_dim=8)
_text("Gemma2", "Gemma2Config", "Gemma2ForCausalLM", **GROUPED, head_dim=8)
_text("Phi3", "Phi3Config", "Phi3ForCausalLM", **GROUPED, **ENDS)
_text(
    "GPT2", "GPT2Config", "GPT2LMHeadModel", vocab_size=WORDS, n_embd=32, n_layer=4, n_head=4, n_positions=64
)
_text("GPTNeoX", "GPTNeoXConfig", "GPTNeoXForCausalLM", **WIDTHS)
_text(
    "OPT",
    "OPTConfig",
    "OPTForCausalLM",
    vocab_size=WORDS,
    hidden_size=32,
    ffn_dim=64,
    num_hidden_layers=4,
    num_attention_heads=4,
    max_position_embeddings=64,
    word_embed_proj_dim=32,
)
_text("Bloom", "BloomConfig", "BloomForCausalLM", vocab_size=WORDS, hidden_size=32, n_layer=4, n_head=4)
_text(
    "Falcon",
    "FalconConfig",
    "FalconForCausalLM",
    vocab_size=WORDS,
    hidden_size=32,
    num_hidden_layers=4,
    num_attention_heads=4,
    max_position_embeddings=64,
)
MIXTURE = {"num_local_experts": 4, "num_experts_per_tok": 2, "experts_implementation": "batched_mm"}
_text("Mixtral", "MixtralConfig", "MixtralForCausalLM", **GROUPED, **MIXTURE)
MIXTURE_OF_FOUR = {"num_experts": 4, "num_experts_per_tok": 2, "experts_implementation": "batched_mm"}
_text(
    "Qwen2Moe",
    "Qwen2MoeConfig",
    "Qwen2MoeForCausalLM",
    **GROUPED,
    **MIXTURE_OF_FOUR,
    moe_intermediate_size=32,
    shared_expert_intermediate_size=32,
)
_text("Gemma3", "Gemma3TextConfig", "Gemma3ForCausalLM", **GROUPED, head_dim=8)
_text("OLMoE", "OlmoeConfig", "OlmoeForCausalLM", **GROUPED, **ENDS, **MIXTURE_OF_FOUR)
_text(
    "DeepseekV3",
    "DeepseekV3Config",
    "DeepseekV3ForCausalLM",
    **WIDTHS | {"num_hidden_layers": 3},
    moe_intermediate_size=16,
    num_key_value_heads=4,
    n_routed_experts=4,
    n_group=2,
    topk_group=1,
    num_experts_per_tok=2,
    kv_lora_rank=8,
    q_lora_rank=8,
    qk_rope_head_dim=4,
    qk_nope_head_dim=4,
    v_head_dim=8,
    first_k_dense_replace=1,
    experts_implementation="batched_mm",
)
_text(
    "Mamba2",
    "Mamba2Config",
    "Mamba2ForCausalLM",
    vocab_size=WORDS,
    hidden_size=32,
    num_hidden_layers=2,
    state_size=4,
    num_heads=4,
    head_dim=16,
    n_groups=1,
    chunk_size=8,
)
_text(
    "XLNet", "XLNetConfig", "XLNetLMHeadModel", vocab_size=WORDS, d_model=32, n_layer=3, n_head=4, d_inner=64
)
_text("BERT", "BertConfig", "BertForMaskedLM", **WIDTHS)
_text("RoBERTa", "RobertaConfig", "RobertaForSequenceClassification", **WIDTHS)
_text("ALBERT", "AlbertConfig", "AlbertModel", **WIDTHS, embedding_size=16)
_text("ELECTRA", "ElectraConfig", "ElectraForPreTraining", **WIDTHS, embedding_size=16)
_text("DeBERTa", "DebertaV2Config", "DebertaV2ForSequenceClassification", **WIDTHS)
_text(
    "DistilBERT",
    "DistilBertConfig",
    "DistilBertForMaskedLM",
    vocab_size=WORDS,
    dim=32,
    hidden_dim=64,
    n_layers=4,
    n_heads=4,
    max_position_embeddings=64,
)
_text(
    "Mamba",
    "MambaConfig",
    "MambaForCausalLM",
    vocab_size=WORDS,
    hidden_size=32,
    num_hidden_layers=3,
    state_size=4,
)
_text("RWKV", "RwkvConfig", "RwkvForCausalLM", vocab_size=WORDS, hidden_size=32, num_hidden_layers=3)

TWO_SIDES = {
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64,
}


def _pair(name: str, config: str, model: str, **options: Any) -> None:
    @entry("transformers", name)
    def make() -> Call:
        given = {"input_ids": tokens(), "decoder_input_ids": tokens(8)}
        return Call(_model(model, _config(config, vocab_size=WORDS, **options)), (), given)


_pair(
    "T5",
    "T5Config",
    "T5ForConditionalGeneration",
    d_model=32,
    d_kv=8,
    d_ff=64,
    num_layers=2,
    num_heads=4,
)
_pair("BART", "BartConfig", "BartForConditionalGeneration", **TWO_SIDES, max_position_embeddings=64)
_pair("Pegasus", "PegasusConfig", "PegasusForConditionalGeneration", **TWO_SIDES, max_position_embeddings=64)


@entry("transformers", "Whisper")
def whisper() -> Call:
    """Return a model of speech with an encoder and a decoder."""
    options = TWO_SIDES | {"vocab_size": WORDS, "num_mel_bins": 8, "max_source_positions": 32}
    config = _config("WhisperConfig", **options, **ENDS, max_target_positions=32, decoder_start_token_id=1)
    given = {"input_features": torch.randn(SAMPLES, 8, 64), "decoder_input_ids": tokens(8)}
    return Call(_model("WhisperForConditionalGeneration", config), (), given)


SPEECH = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "conv_dim": (16, 16),
    "conv_stride": (5, 2),
    "conv_kernel": (10, 3),
    "num_feat_extract_layers": 2,
    "num_conv_pos_embeddings": 8,
    "num_conv_pos_embedding_groups": 2,
    "vocab_size": WORDS,
    "apply_spec_augment": False,
}


def _speech(name: str, config: str, model: str) -> None:
    @entry("transformers", name)
    def make() -> Call:
        return Call(_model(model, _config(config, **SPEECH)), (torch.randn(SAMPLES, 800),))


_speech("Wav2Vec2", "Wav2Vec2Config", "Wav2Vec2ForCTC")
_speech("HuBERT", "HubertConfig", "HubertForCTC")

PATCHES = {
    "hidden_size": 32,
    "num_hidden_layers": 4,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "image_size": 32,
    "patch_size": 8,
}


def _vision(name: str, config: str, model: str, **options: Any) -> None:
    @entry("transformers", name)
    def make() -> Call:
        return Call(_model(model, _config(config, **options)), (images(),))


_vision("ViT", "ViTConfig", "ViTForImageClassification", **PATCHES)
_vision("DINOv2", "Dinov2Config", "Dinov2ForImageClassification", **PATCHES)
_vision(
    "Swin",
    "SwinConfig",
    "SwinForImageClassification",
    image_size=32,
    patch_size=4,
    embed_dim=16,
    depths=[2, 2],
    num_heads=[2, 2],
    window_size=4,
)
_vision(
    "SegFormer",
    "SegformerConfig",
    "SegformerForSemanticSegmentation",
    num_encoder_blocks=2,
    depths=[1, 1],
    sr_ratios=[2, 1],
    hidden_sizes=[16, 32],
    patch_sizes=[7, 3],
    strides=[4, 2],
    num_attention_heads=[1, 2],
    mlp_ratios=[2, 2],
    decoder_hidden_size=32,
)


@entry("transformers", "CLIP")
def clip() -> Call:
    """Return a model of images and texts side by side."""
    text = WIDTHS | {"num_hidden_layers": 2, "projection_dim": 16, **ENDS, "eos_token_id": 2}
    vision = PATCHES | {"num_hidden_layers": 2, "projection_dim": 16}
    config = _config("CLIPConfig", text_config=text, vision_config=vision, projection_dim=16)
    given = {
        "input_ids": tokens(),
        "pixel_values": images(),
        "attention_mask": torch.ones(SAMPLES, LENGTH).long(),
    }
    return Call(_model("CLIPModel", config), (), given)


@entry("transformers", "BLIP")
def blip() -> Call:
    """Return transformers over a text and the patches of an image, as BLIP compares them."""
    config = _config("BlipConfig", text_config=WIDTHS | ENDS, vision_config=PATCHES, projection_dim=16)
    return Call(_model("BlipModel", config), (), {"input_ids": tokens(), "pixel_values": images()})


# ---- diffusers


@entry("diffusers", "UNet2D")
def unet() -> Call:
    """Return the U-Net of an unconditional diffusion model."""
    _torchvision_if_there()
    from diffusers import UNet2DModel

    model = UNet2DModel(
        sample_size=16,
        block_out_channels=(16, 32),
        layers_per_block=1,
        down_block_types=("DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D"),
        norm_num_groups=4,
        attention_head_dim=8,
    )
    return Call(model, (images(16), torch.tensor([3, 5])))


@entry("diffusers", "UNet2DCondition")
def conditioned() -> Call:
    """Return the U-Net of Stable Diffusion."""
    _torchvision_if_there()
    from diffusers import UNet2DConditionModel

    model = UNet2DConditionModel(
        sample_size=16,
        block_out_channels=(16, 32),
        layers_per_block=1,
        down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
        norm_num_groups=4,
        cross_attention_dim=16,
        attention_head_dim=4,
    )
    return Call(model, (images(16, 4), torch.tensor([3, 5]), torch.randn(SAMPLES, 7, 16)))


@entry("diffusers", "AutoencoderKL")
def autoencoder() -> Call:
    """Return the autoencoder of Stable Diffusion."""
    _torchvision_if_there()
    from diffusers import AutoencoderKL

    return Call(AutoencoderKL(block_out_channels=(16,), norm_num_groups=4, layers_per_block=1), (images(16),))


@entry("diffusers", "DiT")
def dit() -> Call:
    """Return a transformer as the denoiser."""
    _torchvision_if_there()
    from diffusers import DiTTransformer2DModel

    model = DiTTransformer2DModel(
        2, 16, 4, num_layers=3, sample_size=8, norm_num_groups=4, num_embeds_ada_norm=10
    )
    given = {"timestep": torch.tensor([3, 5]), "class_labels": torch.tensor([1, 2])}
    return Call(model, (images(8, 4),), given)
