"""A spec is a product in a fixed order; a bad one is refused with file, field, value and rule."""

from __future__ import annotations

from pathlib import Path

import pytest

from partitioner import DevicePool, Devices, OptionError, PartitionerError, Workload, WorkloadError, sweep
from partitioner.analysis.sweeps.asked import asked_for, load_spec
from partitioner.analysis.sweeps.workloads import workload_files
from tests.analysis.sweeps.tiny import POOLS, chain, workload

SOUND = """
[[workloads]]
file = ["a.json", "layers*.csv"]

[[pools]]
accelerators = [2, 4]
memory = ["16GiB", 40e9]

[[pools]]
name = "server"
accelerators = [2, 3]
devices = "devices.json"

[options]
objective = ["throughput", "gpipe"]
gap = 0.01
"""
DEVICES = '{"kinds": [{"name": "accelerator", "count": 1}]}'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a workload, two tables of layers and a file of devices."""
    workload().save(tmp_path / "a.json")
    for name in ("layers1.csv", "layers2.csv"):
        (tmp_path / name).write_text("name,forward\na,1\nb,2\n", encoding="utf-8")
    (tmp_path / "devices.json").write_text(DEVICES, encoding="utf-8")
    return tmp_path


def written(folder: Path, text: str) -> Path:
    path = folder / "spec.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_spec_is_the_product_of_its_parts(folder: Path) -> None:
    text = SOUND.replace('"a.json", ', "")
    spec = load_spec(written(folder, text))
    tasks = spec.tasks()
    assert [graph.name for graph in spec.workloads] == ["layers1", "layers2"]
    assert [pool.label for pool in spec.pools[:2]] == ["2 x 16GiB", "2 x 40G"]
    assert [pool.label for pool in spec.pools[4:]] == [f"server: 1 devices, {n} accelerators" for n in (2, 3)]
    assert len(tasks) == 2 * 6 * 2 and len({task.key for task in tasks}) == 6 * 2  # the tables are equal
    assert [task.row("").objective for task in tasks[:2]] == ["throughput", "gpipe"]
    assert repr(spec) == "<SweepSpec: 2 workloads, 6 pools, 2 sets of options>"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"a.json", ', '"none.json", ', "none.json: file: No such file"),
        ("layers*.csv", "x*.csv", "spec.toml: workloads[0]: file = 'x*.csv': no file has such a name"),
        ("file =", "path =", "spec.toml: workloads[0]: file: is missing"),
        ("[[workloads]]", "[[works]]", "spec.toml: file: workloads: is missing"),
        ("[[workloads]]", "[[works]]", "works: is not a field; these are workloads, pools, options"),
        ("[2, 4]", "[2, -4]", "pools[0]: accelerators = -4: must be an integer from 0 to 65,536"),
        ("[2, 4]", "[]", "pools[0]: accelerators = []: must not be empty"),
        ('"16GiB"', '"16Gi"', "pools[0]: '16Gi': must be a number of bytes"),
        ("memory", "memories", "pools[0]: memories: is not a field; these are name, accelerators"),
        ('"devices.json"', "3", "pools[1]: devices = 3: must be the name of a file"),
        ('"devices.json"', '"d.json"', "d.json: file: No such file"),
        ("[[pools]]", "[pools]", "spec.toml: file: is not TOML"),
        ("gap = 0.01", "gap = 2", "spec.toml: options: gap = 2: must be a fraction from 0 to less than 1"),
        ("gap = 0.01", "gaps = 2", "spec.toml: options: option 'gaps' is unknown in a sweep: must be one of"),
        ("gap = 0.01", "workers = 2", "option 'workers' is unknown in a sweep"),
        ("gap = 0.01", "gap = []", "options: gap = []: must not be empty"),
        ('"gpipe"', '"batch"', "options: objective 'batch' needs microbatches"),
        ("[options]", "options = 3\n[rest]", "options = 3"),
        ('file = ["a.json"', 'bandwith = 3\nfile = ["a.json"', "a.json: bandwith = 3: means nothing to"),
    ],
)
def test_a_bad_spec_is_refused(folder: Path, old: str, new: str, words: str) -> None:
    text = SOUND.replace(old, new, 1)
    if new.startswith("options = 3"):
        text = "options = 3\n" + SOUND.partition("[options]")[0]
    with pytest.raises(PartitionerError) as failure:
        load_spec(written(folder, text))
    assert words in str(failure.value)


def test_a_workload_without_devices_needs_a_number_of_them(folder: Path) -> None:
    text = '[[workloads]]\nfile = "layers1.csv"\n[[pools]]\nmemory = 3\n'
    with pytest.raises(OptionError, match=r"pool '3': accelerators = None: layers1 does not say how many"):
        load_spec(written(folder, text)).tasks()


def test_a_folder_stands_for_its_workloads(folder: Path) -> None:
    assert [file.name for file in workload_files(folder)] == ["a.json", "layers1.csv", "layers2.csv"]
    (folder / "empty").mkdir()
    with pytest.raises(WorkloadError, match=r"empty: folder: must hold a workload"):
        sweep(folder / "empty")


def test_arguments_replace_what_a_spec_says(folder: Path) -> None:
    spec = asked_for(written(folder, SOUND), POOLS, {"objective": "latency"}, {})
    assert spec.pools == POOLS
    assert spec.sets_of_options() == [{"objective": "latency", "gap": 0.01}]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([],), "workloads = []: must not be empty"),
        ((workload(), []), "pools = []: must not be empty"),
        ((workload(), [3]), "pools: 3: must be a DevicePool or Devices"),
        ((workload(), POOLS, {"time_limit": [1, -1]}), "time_limit = -1: must be a positive number"),
        ((workload(), POOLS, {"warm_start": {}}), "option 'warm_start' is unknown in a sweep"),
        ((workload(), POOLS, {"schedule": "gpipe"}), "schedule 'gpipe' needs microbatches"),
    ],
)
def test_bad_arguments_are_refused(arguments: tuple[object, ...], words: str) -> None:
    with pytest.raises(OptionError) as failure:
        sweep(*arguments)  # type: ignore[arg-type]
    assert words in str(failure.value)


def test_keys_tell_workloads_devices_and_options_apart_and_nothing_else() -> None:
    """The names of workloads and pools, and options that have their default, do not change a key."""

    def key(nodes: int = 3, name: str = "", pool: DevicePool = POOLS[0], **options: object) -> str:
        given = Workload(chain(nodes), Devices.accelerated(1), name)
        (task,) = asked_for(given, [pool], options, {}).tasks()
        return task.key

    same = [
        key(), key(name="other"), key(gap=0.0), key(objective="throughput"), key(pool=DevicePool("x", 1)),
        key(pool=DevicePool(devices=Devices.accelerated(1))),
    ]  # fmt: skip
    others = [key(4), key(pool=POOLS[1]), key(gap=0.1), key(objective="gpipe"), key(seed=1)]
    assert len(set(same)) == 1
    assert len({*same, *others}) == 1 + len(others)


@pytest.mark.parametrize(
    "text",
    [
        '[[workloads]]\nfile = "a**"\nbatch = 1\n',
        '[[workloads]]\nfile = "**/x**y/*.json"\n',
        f'[[workloads]]\nfile = "a.json"\nbatch = {"1" * 5000}\n',
        f'[[workloads]]\nfile = "{"a" * 300}"\n',
        '[[workloads]]\nfile = "\\u0000"\n',
        f"[options]\nx = {'[' * 5000}{']' * 5000}\n",
    ],
)
def test_odd_files_are_refused_by_name(folder: Path, text: str) -> None:
    spec = folder / "odd.toml"
    spec.write_text(text, encoding="utf-8")
    with pytest.raises(PartitionerError, match=r"odd\.toml|a{300}|file"):
        load_spec(spec)
