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
