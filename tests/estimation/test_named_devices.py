"""Named devices have the figures of their data sheets; a device of the user's own is read, or refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from partitioner import OptionError, WorkloadError, load_config
from partitioner.estimation import DEVICES, NamedDevice, named_device, read_device
from partitioner.estimation.curves import measured_devices
from partitioner.estimation.named_devices import BYTES

STATED = {  # TFLOP/s of bfloat16 (else float16) without sparsity, GB/s, GB, GB/s to peers: the data sheets
    "V100": (125, 900, 32, 150),
    "T4": (65, 320, 16, 16),
    "L4": (121, 300, 24, 32),
    "L40S": (362.05, 864, 48, 32),
    "A10": (125, 600, 24, 32),
    "RTX 3090": (71, 936, 24, 32),
    "RTX 4090": (165.2, 1008, 24, 32),
    "RTX 5090": (209.5, 1792, 32, 64),
    "A100-40": (312, 1555, 40, 300),
    "A100-80": (312, 2039, 80, 300),
    "A800": (312, 2039, 80, 200),
    "H100": (989.4, 3350, 80, 450),
    "H100 PCIe": (756.5, 2000, 80, 64),
    "H200": (989.4, 4800, 141, 450),
    "H800": (989.4, 3350, 80, 200),
    "H20": (148, 4000, 96, 450),
    "GH200": (989.4, 4000, 96, 450),
    "B200": (2250, 7700, 180, 900),
    "GB200": (2500, 8000, 186, 900),
    "MI250X": (383, 3277, 128, 50),
    "MI300X": (1307.4, 5300, 192, 448),
    "TPU v4": (275, 1200, 32, 300),
    "TPU v5e": (197, 819, 16, 200),
    "TPU v5p": (459, 2765, 95, 600),
    "TPU v6e": (918, 1640, 32, 400),
    "CPU": (56 * 2.0 * 2048 / 1e3, 8 * 4.8 * 8, 512, 64),
    "EPYC": (96 * 2.4 * 64 / 1e3, 12 * 4.8 * 8, 768, 64),
}
OWN: dict[str, Any] = {
    "name": "mine",
    "memory_gb": 16,
    "bandwidth_gb_s": 500,
    "peer_gb_s": 10,
    "peak_tflops": {"bfloat16": 50},
    "source": "measured",
}
TINY = {
    "model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 100,
}  # fmt: skip


def test_the_table_has_the_stated_figures() -> None:
    assert DEVICES.keys() == STATED.keys()
    for name, (teraflops, bandwidth, memory, peer) in STATED.items():
        device = DEVICES[name]
        dtype = "bfloat16" if "bfloat16" in device.peak else "float16"
        assert device.speed(dtype) == pytest.approx(teraflops * 1e12, rel=1e-3)
        assert (device.bandwidth, device.memory, device.peer) == pytest.approx(
            (bandwidth * 1e9, memory * 1e9, peer * 1e9)
        )
        assert device.source and device.host and device.peak.keys() <= BYTES.keys()
        assert (device.like or name) in measured_devices()


@pytest.mark.parametrize("name", DEVICES)
def test_narrower_numbers_are_no_slower(name: str) -> None:
    speeds = [DEVICES[name].peak[dtype] for dtype in BYTES if dtype in DEVICES[name].peak]
    assert speeds == sorted(speeds)


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("h100-sxm", "H100"),
        ("h100 pcie", "H100 PCIe"),
        ("Xeon", "CPU"),
        ("rtx_4090", "RTX 4090"),
        ("A10G", "A10"),
    ],
)
def test_spelling_and_other_names(given: str, name: str) -> None:
    assert named_device(given).name == name


def test_half_a_name_suggests_all_that_begin_so() -> None:
    with pytest.raises(OptionError, match=r"device = 'A100': .*did you mean 'A100-40' or 'A100-80'\?$"):
        named_device("A100")
    with pytest.raises(OptionError, match=r"did you mean 'MI300X'\?$"):
        named_device("MI300")


def test_a_file_is_a_device_wherever_a_name_is(tmp_path: Path) -> None:
    path, config = tmp_path / "mine.json", tmp_path / "config.json"
    path.write_text(json.dumps(OWN))
    config.write_text(json.dumps(TINY))
    device = NamedDevice("mine", {"bfloat16": 50e12}, 500e9, 16e9, "measured", 10e9)
    assert read_device(path) == named_device(str(path)) == device
    given = {"sequence": 8, "bandwidth": 1e9}
    from_file = load_config(config, device=str(path), **given)  # type: ignore[arg-type]
    from_python = load_config(config, device=device, **given)  # type: ignore[arg-type]
    assert from_file.graph.time.tolist() == from_python.graph.time.tolist()
    assert from_file.devices == from_python.devices
    assert from_file.devices.kinds[0].memory == 16e9


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"memory_gb": None}, "memory_gb = None: must be a finite number"),
        ({"memory_gb": 0}, "memory_gb = 0: must be"),
        ({"peak_tflops": {}}, "peak_tflops = {}: must have a speed for at least one type"),
        ({"peak_tflops": {"bf16": 1}}, "peak_tflops = 'bf16': must be one of float64"),
        ({"peak_tflops": {"bfloat16": "fast"}}, "peak_tflops.bfloat16 = 'fast': must be a finite number"),
        ({"memory": 5}, "'memory': is unknown; a field is one of .* did you mean 'memory_gb'"),
        ({"name": ""}, "name = '': must be a text that is not empty"),
        ({"like": 5}, "like = 5: must be a text"),
    ],
)
def test_a_flaw_names_file_and_field(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(OWN | change))
    with pytest.raises(WorkloadError, match=rf"mine\.json: device: {message}"):
        read_device(path)
