"""One call reads a file of any format, and refuses what means nothing to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from partitioner import Devices, Graph, OptionError, Workload, WorkloadError, load, load_pipedream
from partitioner.extensions import Reader, registered
from partitioner.formats.file_formats import recognised
from tests.formats.llm.published import LLAMA_70B
from tests.instances import document, write

PROFILE = Path(__file__).parents[2] / "instances" / "profiles" / "resnet50.txt"
CONTENTS: tuple[tuple[str, Any, str], ...] = (
    ("w.json", document(), "a workload file"),
    ("w.json", {"version": 1, "devices": {}, "nodes": []}, "a workload file"),
    ("w.json", {"layers": []}, "a file of layers"),
    ("w.csv", "name,forward", "a table of layers"),
    ("W.CSV", "name,forward", "a table of layers"),
    ("config.json", LLAMA_70B, "a model's config"),
    ("config.json", {"architectures": ["Other"]}, "a model's config"),
    ("w.json", {"maxMemoryPerDevice": 1}, "an input of Piper"),
    ("w.json", {"1": {"nodes": []}, "2": {"nodes": []}}, "a profile of Sailor"),
    ("w.json", {"execution_time": {}}, "a profile of Metis"),
    ("w.txt", "", "a profile"),
    ("w.json", [], "a workload file"),
)


@pytest.mark.parametrize(("name", "content", "expected"), CONTENTS)
def test_the_format_of_a_file_is_told(tmp_path: Path, name: str, content: Any, expected: str) -> None:
    assert recognised(write(tmp_path, content, name))[0].name == expected


def test_a_profile_is_read_as_by_its_own_function() -> None:
    given = {"bandwidth": 1e9, "accelerators": 2, "memory": 16e9, "cpus": 1}
    expected = load_pipedream(PROFILE, cpu_factor=3.0, **given)  # type: ignore[arg-type]
    found = load(PROFILE, cpu_factor=3.0, **given)  # type: ignore[arg-type]
    assert found.sha256 == expected.sha256 and found.name == expected.name


def test_devices_take_the_place_of_those_of_the_file(workload_file: Path) -> None:
    plain = load(workload_file)
    more = load(workload_file, "duplex", accelerators=5, memory="1MiB", cpus=0).devices
    assert [kind.count for kind in more.kinds] == [5, 0] and more.kinds[0].memory == 2**20
    assert (plain.devices.communication, more.communication) == ("sequential", "duplex")
    own = Devices.accelerated(3, memory=5e3, communication="overlapped")
    assert load(workload_file, devices=own).devices == own
    assert load(workload_file, devices=own).graph.digest == plain.graph.digest


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bandwidth": 1}, "bandwidth = 1: means nothing to a workload file; its options are time_unit"),
        ({"cpus": 1, "devices": Devices.accelerated(1)}, "cpus and devices say the same: give one of them"),
        ({"memory": "16 GiBs"}, "'16 GiBs': must be a number of bytes"),
    ],
)
def test_an_option_that_means_nothing_is_refused(
    workload_file: Path, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(OptionError) as caught:
        load(workload_file, **options)
    assert message in str(caught.value)


def test_a_reader_of_another_package_is_asked(tmp_path: Path) -> None:
    graph = Graph.from_arrays({"accelerator": [1.0, 2.0]}, [(0, 1)])
    reader = Reader("pairs", (".pairs",), lambda path: Workload(graph, Devices.accelerated(1)))
    path = write(tmp_path, "any", "w.pairs")
    with registered(reader):
        assert load(path, accelerators=7).devices.kinds[0].count == 7
        with pytest.raises(
            OptionError, match="bandwidth = 1: means nothing to this file; it takes no options"
        ):
            load(path, bandwidth=1)
    with pytest.raises(WorkloadError, match="is not JSON"):
        load(path)
    with pytest.raises(OptionError, match="must be a tuple such as"):
        Reader("tables", (".csv",), reader.read)


@pytest.mark.parametrize("name", ["a" * 300, "a/" * 3000, "a\0b"])
def test_names_that_no_file_can_have_are_refused(name: str) -> None:
    with pytest.raises(WorkloadError, match=r"file: (File name too long|embedded null byte)"):
        load(name)
