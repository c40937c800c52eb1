"""A devices file says what `Devices` does; what it should not say is told with its place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from partitioner import DeviceGroup, DeviceKind, Devices, GroupLink, Level, WorkloadError
from partitioner.formats.devices import load_devices

FEW = settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
NAMES = (
    "name",
    "count",
    "memory",
    "times",
    "time_factor",
    "bandwidth",
    "slowdown",
    "devices",
    "kinds",
    "levels",
    "groups",
    "links",
    "between",
)
VALUE = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-1, 9)
    | st.floats()
    | st.sampled_from(["gpu", "", "server", "duplex"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from((*NAMES, "gpu")), inner, max_size=4)
    ),
    max_leaves=12,
)


def read(tmp_path: Path, data: Any) -> Devices:
    path = tmp_path / "devices.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    return load_devices(path)


def test_every_field(tmp_path: Path) -> None:
    kind = {
        "name": "gpu", "count": 4, "memory": 16e9, "pays_communication": True, "times": "accelerator",
        "time_factor": 0.5, "transfer_factor": 2, "bandwidth": 1e6,
    }  # fmt: skip
    level = {"name": "server", "devices": {"gpu": 2, "cpu": 1}, "slowdown": 8}
    cpu = {"name": "cpu", "count": 2, "memory": None, "pays_communication": False}
    given = {"kinds": [kind, cpu], "levels": [level], "communication": "duplex"}
    assert read(tmp_path, {**given, "synchronisation": "overlapped"}) == Devices(
        (
            DeviceKind("gpu", 4, 16e9, True, "accelerator", 0.5, 2.0, 1e6),
            DeviceKind("cpu", 2, pays_communication=False),
        ),
        "duplex",
        (Level("server", {"gpu": 2, "cpu": 1}, 8.0),),
        "overlapped",
    )


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], "file: []: must be a JSON object"),
        ({}, "file: kinds: is missing"),
        ({"kinds": [{"name": "gpu"}]}, "kinds[0]: count: is missing"),
        (
            {"kinds": [{"name": "gpu", "count": 1, "mem": 3}]},
            "kinds[0]: mem: is not a field; these are name,",
        ),
        ({"kinds": [{"name": "gpu", "count": "1"}]}, "kinds[0]: count = '1': must be a whole number"),
        (
            {"kinds": [{"name": "gpu", "count": 1, "time_factor": 0}]},
            "device kind gpu: time_factor = 0.0: must",
        ),
        ({"kinds": [], "link": 1}, "file: link: is not a field; these are kinds,"),
        (
            {"kinds": [{"name": "gpu", "count": 1}], "levels": [{"name": "a"}]},
            "levels[0]: devices: is missing",
        ),
        ({"kinds": [{"name": "gpu", "count": 0}]}, "there must be at least one device"),
        (
            {"kinds": [{"name": "gpu", "count": 2}], "groups": [{"name": "a"}]},
            "groups[0]: devices: is missing",
        ),
        (
            {"kinds": [{"name": "gpu", "count": 2}], "links": [{"slowdown": 2, "between": "a"}]},
            "links[0]: between = 'a': must be a list",
        ),
        (
            {
                "kinds": [{"name": "gpu", "count": 2}],
                "groups": [{"name": "a", "devices": {"gpu": 1}}, {"name": "b", "devices": {"gpu": 1}}],
                "links": [{"slowdown": 2, "between": ["a", "c"]}],
            },
            "link between a and c: between = 'c': must be the name of a group: a, b",
        ),
    ],
)
def test_what_is_wrong_is_told(tmp_path: Path, data: Any, message: str) -> None:
    with pytest.raises(WorkloadError) as error:
        read(tmp_path, data)
    assert message in str(error.value)
    assert str(error.value).startswith(str(tmp_path))


def test_groups_and_links(tmp_path: Path) -> None:
    given = {
        "kinds": [{"name": "A100", "count": 3}, {"name": "V100", "count": 1}],
        "groups": [
            {"name": "server 1", "devices": {"A100": 2}},
            {"name": "server 2", "devices": {"A100": 1, "V100": 1}, "slowdown": 2},
        ],
        "links": [{"slowdown": 8}],
    }
    devices = read(tmp_path, given)
    groups = (DeviceGroup("server 1", {"A100": 2}), DeviceGroup("server 2", {"A100": 1, "V100": 1}, 2.0))
    assert (devices.groups, devices.links) == (groups, (GroupLink(8.0),))
    assert read(tmp_path, devices.as_dict()) == devices


@FEW
@given(data=st.dictionaries(st.sampled_from(NAMES), VALUE, max_size=4) | VALUE)
def test_devices_or_a_workload_error(tmp_path: Path, data: Any) -> None:
    try:
        found = read(tmp_path, data)
    except WorkloadError as error:
        assert error.flaws
    else:
        assert isinstance(found, Devices)
