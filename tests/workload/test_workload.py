"""A workload is a graph and devices that fit, with a hash of all that a solver sees of them."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

from partitioner import Devices, Workload, WorkloadError, load
from tests.instances import SOLVABLE, chain, document, write


def test_every_instance_has_a_hash_of_its_own() -> None:
    hashes = {Workload(make().graph, make().devices).sha256 for make in SOLVABLE}
    assert len(hashes) == len(SOLVABLE)


def test_the_hash_depends_on_the_devices_too() -> None:
    graph = chain().graph
    sets = [
        Devices.accelerated(2),
        Devices.accelerated(3),
        Devices.accelerated(2, memory=1e9),
        Devices.accelerated(2, communication="duplex"),
    ]
    assert len({Workload(graph, devices).sha256 for devices in sets}) == 4


def test_the_hash_survives_pickle_and_the_file(tmp_path: Path) -> None:
    """A file read twice, under two names, and a copy have one hash."""
    first = load(write(tmp_path, document(), "first.json"))
    second = load(write(tmp_path, document(), "second.json"))
    assert first.name == "first" and second.name == "second"
    assert first.sha256 == second.sha256 == pickle.loads(pickle.dumps(first)).sha256


@pytest.mark.parametrize("devices", [None, "2 accelerators", 2])
def test_devices_must_be_devices(devices: Any) -> None:
    with pytest.raises(WorkloadError, match=r"devices: \w+: must be a partitioner.Devices"):
        Workload(chain().graph, devices)
