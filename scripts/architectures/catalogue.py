"""The committed instances: which network, at which size, on which machine."""

from dataclasses import replace
from functools import partial

from architectures.cost_model import A100_40GB, P100_16GB, TPU_V3, V100_16GB, V100_32GB
from architectures.document import Options
from architectures.inception import inception
from architectures.mixture import Experts
from architectures.recipes import (
    bert_workload,
    gnmt_workload,
    gpt_workload,
    image_workload,
    mixture_workload,
)
from architectures.resnet import BLOCKS_50, resnet
from architectures.transformer import Shape
from architectures.unet import unet
from architectures.workload import Workload

LAYER_INFERENCE = Options()
LAYER_TRAINING = Options(training=True)
OPERATOR_INFERENCE = Options(operators=True, separate_weights=True)
OPERATOR_TRAINING = Options(training=True, operators=True)
MEMORY_IN_PARTS = replace(LAYER_TRAINING, parts=True)
LOOKUP_ON_HOST = replace(OPERATOR_INFERENCE, host_only=("gather", "cast", "invert"))
LOOKUP_ON_HOST_TRAINING = replace(OPERATOR_TRAINING, host_only=("gather",))
SEARCH_ON_HOST = replace(OPERATOR_INFERENCE, host_only=("gather", "beam_search"))

RESNET_50 = partial(resnet, blocks=BLOCKS_50)
MIXTRAL = Shape(32, 4096, 32, 14336, 32000, 4, 512, key_heads=8, bias=False)
SWITCH = Shape(12, 768, 12, 3072, 32128, 8, 512, bias=False)
SMALL_MIXTURE = Shape(6, 1024, 16, 4096, 32128, 8, 512, bias=False)

WORKLOADS: dict[str, Workload] = {
    "bert24_training": bert_workload(24, P100_16GB, 6, LAYER_TRAINING),
    "bert24_inference": bert_workload(24, P100_16GB, 6, LAYER_INFERENCE),
    "bert3_operator_inference": bert_workload(3, V100_16GB, 3, LOOKUP_ON_HOST),
    "bert3_operator_training": bert_workload(
        3, V100_16GB, 3, replace(OPERATOR_TRAINING, separate_weights=True)
    ),
    "bert6_operator_training": bert_workload(6, V100_16GB, 3, LOOKUP_ON_HOST_TRAINING),
    "bert12_operator_inference": bert_workload(12, TPU_V3, 6, OPERATOR_INFERENCE),
    "resnet50_inference": image_workload("ResNet-50", RESNET_50, 64, (P100_16GB, 6), LAYER_INFERENCE),
    "resnet50_operator_training": image_workload(
        "ResNet-50", RESNET_50, 64, (V100_16GB, 4), OPERATOR_TRAINING
    ),
    "inceptionv3_inference": image_workload("Inception-v3", inception, 64, (P100_16GB, 6), LAYER_INFERENCE),
    "inceptionv3_training": image_workload("Inception-v3", inception, 64, (P100_16GB, 6), LAYER_TRAINING),
    "inceptionv3_operator_inference": image_workload(
        "Inception-v3", inception, 64, (V100_16GB, 6), Options(operators=True)
    ),
    "gnmt_inference": gnmt_workload(6, LAYER_INFERENCE, 128),
    "gnmt_training": gnmt_workload(6, LAYER_TRAINING, 128),
    "gnmt_operator_inference": gnmt_workload(4, SEARCH_ON_HOST, 64, cpus=2),
    "gpt2xl_training": gpt_workload("GPT-2 XL", (48, 1600, 25), (1, 1024), (V100_16GB, 3), LAYER_TRAINING),
    "gpt2_operator_training": gpt_workload(
        "GPT-2 small", (12, 768, 12), (4, 1024), (V100_16GB, 4), OPERATOR_TRAINING
    ),
    "gpt3_13b_inference": gpt_workload(
        "GPT-3 13B", (40, 5120, 40), (1, 2048), (V100_16GB, 2), LAYER_INFERENCE
    ),
    "gpt3_6b7_training": gpt_workload(
        "GPT-3 6.7B", (32, 4096, 32), (1, 2048), (A100_40GB, 4), LAYER_TRAINING
    ),
    "gpt3_6b7_parts_training": gpt_workload(
        "GPT-3 6.7B", (32, 4096, 32), (1, 2048), (A100_40GB, 8), MEMORY_IN_PARTS, cpus=0
    ),
    "gpt3_96_layers_training": gpt_workload(
        "Deep GPT-3", (96, 4096, 32), (1, 2048), (A100_40GB, 256), MEMORY_IN_PARTS, cpus=0
    ),
    "moe_mixtral_inference": mixture_workload(
        "Mixtral 8x7B", MIXTRAL, Experts(8, 2), (A100_40GB, 3), LAYER_INFERENCE
    ),
    "moe_switch_training": mixture_workload(
        "Switch-style mixture of experts",
        SWITCH,
        Experts(8, 1, every=2, gated=False),
        (V100_16GB, 4),
        LAYER_TRAINING,
    ),
    "moe_small_operator_inference": mixture_workload(
        "Small mixture of experts", SMALL_MIXTURE, Experts(4, 2), (V100_32GB, 4), OPERATOR_INFERENCE
    ),
    "unet_training": image_workload("U-Net", unet, 24, (P100_16GB, 5), LAYER_TRAINING),
}
