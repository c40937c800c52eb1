"""Bytes of weights that are not all of one type are those of the files that tools write."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import partitioner as pt
from partitioner import OptionError
from partitioner.formats.llm.decoder import Attention, DecoderBlock, Dense, Experts
from partitioner.formats.llm.stored_weights import GGUF, WEIGHT_TYPES, Place, is_finer, weight_bytes
from tests.formats.llm.published import MODELS
from tests.instances import write

MIB = 2**20
LLAMA_8B, LLAMA_70B = MODELS["Llama-3.1-8B"].config, MODELS["Llama-3.1-70B"].config
MIXTRAL = MODELS["Mixtral-8x7B"].config
GIVEN: dict[str, Any] = {
    "sequence": 15,
    "device": "H100",
    "bandwidth": 25e9,
    "training": False,
    "generate": 1,
}


def weights(folder: Path, config: dict[str, Any], dtype: str) -> float:
    """Return the MiB of all weights."""
    path = write(folder, config, "config.json")
    return float(pt.load_config(path, weight_dtype=dtype, **GIVEN).graph.parts[0].sum()) / MIB


@pytest.mark.parametrize(
    ("config", "dtype", "mebibytes"),
    [
        (LLAMA_8B, "float16", 15317),  # ollama/ollama#8361
        (LLAMA_8B, "q8_0", 8137.6),  # 8.03e9 weights of 8.5 bits
        (LLAMA_8B, "q4_k_m", 4685.3),  # llama.cpp prints 4.58 GiB, 4.89 bits a weight
        (LLAMA_70B, "q4_k_m", 40543.11),  # llama.cpp prints 39.59 GiB, 4.82 bits a weight
        (LLAMA_70B, "q4_0", 38110.61),  # a log of llama.cpp, to the last digit
        (LLAMA_70B | {"vocab_size": 32000}, "q4_k_m", 39503.23),  # of Llama 2: 38.58 GiB, 4.80 bits
        (MIXTRAL, "q4_k_m", 27125),  # 26.49 GiB, 4.87 bits
    ],
)
def test_files_of_llama_cpp(tmp_path: Path, config: dict[str, Any], dtype: str, mebibytes: float) -> None:
    assert weights(tmp_path, config, dtype) == pytest.approx(mebibytes, rel=0.0005)


SIZES = st.integers(1, 64).map(lambda size: 8 * size)


@given(
    st.integers(1, 100), SIZES, st.integers(1, 8), st.integers(1, 8), SIZES, SIZES,
    st.sampled_from([0, 4, 8]), st.sampled_from(["q4_k_m", "q5_k_m"]),
)  # fmt: skip
@settings(max_examples=1000, deadline=None)
def test_a_mix_has_the_types_of_llama_cpp_matrix_by_matrix(
    layers: int, hidden: int, group: int, kv: int, size: int, width: int, experts: int, mix: str
) -> None:
    """Against a transcription of llama.cpp's rules, in the bits of each matrix of each layer."""
    bits = {"q4": 4.5, "q5": 5.5, "q6": 6.5625, "q8": 8.5}
    base, heads = bits[mix[:2]], group * kv
    network = Experts(experts, 1, width) if experts else Dense(width)
    block = DecoderBlock(Attention(heads, kv, size, size), network)
    sizes = {"q": hidden * heads * size, "k": hidden * kv * size, "v": hidden * kv * size,
             "o": hidden * heads * size, "gate": hidden * width, "up": hidden * width,
             "down": hidden * width}  # fmt: skip
    many = {"gate", "up", "down"}
    for i in range(layers):
        kind = dict.fromkeys(sizes, base)
        more = i < layers // 8 or i >= 7 * layers // 8 or (i - layers // 8) % 3 == 2
        if more:
            kind["v"] = kind["down"] = bits["q6"]
        if layers == 80 and heads != kv and kind["v"] == bits["q4"]:
            kind["v"] = bits["q5"]
        if experts == 8:
            kind["k"] = kind["v"] = bits["q8"]
            kind["o"] = bits["q5"]  # of q5_k it is that already
        times = {name: max(experts, 1) if name in many else 1 for name in sizes}
        expected = sum(sizes[name] * times[name] * kind[name] for name in sizes) / 8
        count = sum(sizes[name] * times[name] for name in sizes)
        found = weight_bytes(mix).of_block(block, hidden, count, Place(is_finer(i, layers), layers))
        assert found == pytest.approx(expected, rel=1e-12)


def test_quantised_models_have_wide_ends(tmp_path: Path) -> None:
    """Embedding, head and last norm have two bytes a parameter."""
    ends, blocks = 2 * 128256 * 4096 + 4096, 8030261248 - 2 * 128256 * 4096 - 4096
    assert weights(tmp_path, LLAMA_8B, "int8") * MIB == ends * 2 + blocks
    assert weights(tmp_path, LLAMA_8B, "int4") * MIB == ends * 2 + blocks * (4 + 16 / 128) / 8 + blocks / 64


@pytest.mark.parametrize("dtype", GGUF)
def test_a_type_of_gguf_is_its_block_of_weights(dtype: str) -> None:
    """Llama.cpp's blocks: 32 weights with one or two factors, 256 weights with factors of factors."""
    sizes = {"q4_0": 18 / 32, "q5_0": 22 / 32, "q8_0": 34 / 32, "q4_k": 144 / 256, "q5_k": 176 / 256}
    assert weight_bytes(dtype).block == (sizes | {"q6_k": 210 / 256})[dtype]


def test_every_type_is_known_and_another_is_not(tmp_path: Path) -> None:
    assert all(0.5 <= weight_bytes(name).block <= 8 for name in WEIGHT_TYPES)
    with pytest.raises(OptionError, match=r"weight_dtype = 'q4_k_n': must be .* did you mean 'q4_k_m'"):
        weights(tmp_path, LLAMA_8B, "q4_k_n")


FP8 = {"quant_method": "fp8", "activation_scheme": "dynamic"}


def group(kind: str, bits: int, activations: bool = True) -> dict[str, Any]:
    """The field of a model that compressed-tensors has written."""
    both = {"weights": {"type": kind, "num_bits": bits}, "input_activations": {} if activations else None}
    return {"quant_method": "compressed-tensors", "config_groups": {"group_0": both}}


@pytest.mark.parametrize(
    ("field", "device", "options"),
    [
        (FP8 | {"weight_block_size": [128, 128]}, "H100", {"dtype": "float8_block"}),
        (FP8, "H100", {"dtype": "float8"}),
        (FP8, "A100-80", {"dtype": "bfloat16", "weight_dtype": "float8"}),
        ({"quant_method": "awq", "bits": 4}, "H100", {"weight_dtype": "int4"}),
        ({"quant_method": "gptq", "bits": 8}, "H100", {"weight_dtype": "int8"}),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, "H100", {"weight_dtype": "int4"}),
        (group("int", 8), "H100", {"dtype": "int8"}),
        (group("float", 8), "H100", {"dtype": "float8"}),
        (group("int", 4, False), "H100", {"weight_dtype": "int4"}),
        (group("float", 8, False), "H100", {"weight_dtype": "float8"}),
        ({"quant_method": "of a later year"}, "H100", {}),
        ("not a mapping", "H100", {}),
    ],
)
def test_a_model_that_is_stored_quantised_is_served_so(
    tmp_path: Path, field: Any, device: str, options: dict[str, Any]
) -> None:
    """As with the options that say the same; these come first, and training keeps the type of the config."""
    given = GIVEN | {"device": device}
    plain = write(tmp_path, LLAMA_8B, "plain.json")
    quantised = write(tmp_path, {**LLAMA_8B, "quantization_config": field}, "quantised.json")
    expected = pt.load_config(plain, **given | options).graph
    assert pt.load_config(quantised, **given).graph.digest == expected.digest
    own = {"dtype": "bfloat16"}
    assert (
        pt.load_config(quantised, **given | own).graph.digest
        == pt.load_config(plain, **given | own).graph.digest
    )
    trained: dict[str, Any] = {"sequence": 16, "device": device, "bandwidth": 25e9}
    assert pt.load_config(quantised, **trained).graph.digest == pt.load_config(plain, **trained).graph.digest
