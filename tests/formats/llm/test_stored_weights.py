"""Bytes of weights that are not all of one type are those of the files that tools write."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import partitioner as pt
from partitioner import OptionError
from partitioner.formats.llm.stored_weights import GGUF, WEIGHT_TYPES, weight_bytes
from tests.formats.llm.published import MODELS
from tests.instances import write

MIB = 2**20
LLAMA_8B, LLAMA_70B = MODELS["Llama-3.1-8B"].config, MODELS["Llama-3.1-70B"].config
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
        (LLAMA_70B, "q4_k_m", 40543),  # llama.cpp prints 39.59 GiB, 4.82 bits a weight
    ],
)
def test_files_of_llama_cpp(tmp_path: Path, config: dict[str, Any], dtype: str, mebibytes: float) -> None:
    assert weights(tmp_path, config, dtype) == pytest.approx(mebibytes, rel=0.004)


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
