"""Kernels run where neither the package's folder nor the home can be written, and change nothing global."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import partitioner
from partitioner.base import compiled

PROGRAM = """
import os
before = dict(os.environ)
import numba, numpy
from partitioner.base import compiled
from partitioner.methods.dp import lattice as weights
from partitioner.methods.dp.lattice import chain_lattice
lattice = chain_lattice(numpy.arange(3))
print(weights.remaining_weights(lattice, numpy.array([1.0, 2.0, 4.0])).tolist())
print(sum(weights._fill_remaining.stats.cache_hits.values()))
print(compiled.cache_note())
assert os.environ == before and not numba.config.CACHE_DIR
"""


@pytest.fixture
def unwritable(tmp_path: Path) -> Path:
    """A copy of the package with a file wherever numba would make a folder for its cache."""
    package = tmp_path / "site" / "partitioner"
    shutil.copytree(Path(partitioner.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in (package, *(path for path in package.rglob("*") if path.is_dir())):
        (folder / "__pycache__").touch()
    return package.parent


def lines_of(site: Path, temporary: Path) -> list[str]:
    """What the program prints with the copy of the package and without a home."""
    environment = {name: os.environ[name] for name in os.environ if not name.startswith(("NUMBA", "XDG"))}
    environment |= {"PYTHONPATH": str(site), "HOME": os.devnull, "TMPDIR": str(temporary)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=site,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_the_cache_is_in_a_temporary_folder_then(unwritable: Path, tmp_path: Path) -> None:
    """The second process finds there what the first one compiled."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    first, second = lines_of(unwritable, temporary), lines_of(unwritable, temporary)
    assert first[0] == second[0] == "[7.0, 6.0, 4.0, 0.0]"
    assert (first[1], second[1]) == ("0", "1")
    assert str(temporary) in first[2]


@pytest.mark.slow
def test_without_such_a_folder_there_is_no_cache(unwritable: Path, tmp_path: Path) -> None:
    """One that others may write to is refused: code is loaded from it."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    open_to_all = temporary / f"partitioner-kernels-{os.getuid()}"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    found = lines_of(unwritable, temporary)
    assert found[0] == "[7.0, 6.0, 4.0, 0.0]"
    assert "compiled in every process" in found[2]
    assert list(open_to_all.iterdir()) == []


def test_where_numba_finds_a_place_there_is_no_note() -> None:
    assert compiled.cache_note() == ""


NAMED = """
from typing import NamedTuple
from partitioner.base.compiled import njit

class {name}(NamedTuple):
    x: float

@njit(cache=True)
def twice(given):
    return 2 * given.x

print(twice({name}(2.0)), sum(twice.stats.cache_hits.values()))
"""


@pytest.mark.slow
@pytest.mark.parametrize(("names", "hits"), [(["Old", "New"], "00"), (["Old", "Old", "New", "New"], "0101")])
def test_a_cache_that_names_a_class_of_an_earlier_version_is_ignored(
    names: list[str], hits: str, tmp_path: Path
) -> None:
    """A kernel is cached, its argument's class is renamed: the kernel is compiled anew, and cached again."""
    printed = []
    for name in names:
        source = NAMED.format(name=name)
        if not (tmp_path / "kernels.py").exists() or (tmp_path / "kernels.py").read_text() != source:
            (tmp_path / "kernels.py").write_text(source)
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(tmp_path), *filter(None, sys.path)))}
        command = [sys.executable, "-B", "-c", "import kernels"]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        printed.append(done.stdout.split())
    assert printed == [["4.0", hit] for hit in hits]


@pytest.mark.slow
def test_kernels_that_two_processes_compiled_run_in_one(tmp_path: Path) -> None:
    """Numba compiles functions of one name for ``np.sort`` and ``np.argsort``; their symbols must differ.

    The second process compiles three functions before, after which numba's own counts of functions are equal.
    """
    for name in ("sort", "argsort"):
        kernel = f"@njit(cache=True)\ndef kernel(values):\n    return np.{name}(values)\n"
        source = f"import numpy as np\nfrom partitioner.base.compiled import njit\n{kernel}"
        (tmp_path / f"by_{name}.py").write_text(source, encoding="utf-8")
    others = "import numba\nfor i in range(3): numba.njit(eval(f'lambda x: x + {i}'))(1)\n"
    call = "import numpy as np, {0}\n{0}.kernel(np.array([2.0, 1.0]))"
    run_with_kernels(tmp_path, call.format("by_sort"))
    run_with_kernels(tmp_path, others + call.format("by_argsort"))
    both = (
        "import numpy as np, by_sort, by_argsort\nvalues = np.arange(100.0)[::-1].copy()\n"
        "assert by_sort.kernel(values).tolist() == sorted(values)\n"
        "assert by_argsort.kernel(values).tolist() == list(range(99, -1, -1))\n"
    )
    run_with_kernels(tmp_path, both)


def run_with_kernels(folder: Path, program: str) -> None:
    """Run a program that imports modules of a folder, with this package."""
    root = str(Path(partitioner.__file__).parents[1])
    environment = os.environ | {"PYTHONPATH": os.pathsep.join((str(folder), root))}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)


KERNEL = "from partitioner.base.compiled import njit\n@njit(cache=True)\ndef kernel(x):\n    return x + 1\n"
RUN = "import one\nfrom partitioner.base import compiled\nassert one.kernel(1) == 2\n"


@pytest.mark.parametrize(
    ("ending", "length"),
    [("nbi", 0), *(pytest.param(each, 100, marks=pytest.mark.slow) for each in ("nbi", "nbc"))],
)
def test_damaged_code_is_compiled_again_with_a_note(ending: str, length: int, tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text(KERNEL, encoding="utf-8")
    run_with_kernels(tmp_path, f"{RUN}assert not compiled.cache_note()")
    (damaged,) = (tmp_path / "__pycache__").glob(f"*.{ending}")
    damaged.write_bytes(damaged.read_bytes()[:length])
    run_with_kernels(
        tmp_path,
        f"{RUN}note = compiled.cache_note()\n"
        "assert note == 'the cached code of kernel kernel was damaged: compiled again', note",
    )
    run_with_kernels(tmp_path, f"{RUN}assert not compiled.cache_note()\nassert one.kernel.stats.cache_hits")


def test_a_kernel_runs_where_the_disk_is_full(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text(KERNEL, encoding="utf-8")
    full = (
        "import errno, os, numba.core.caching as caching\n"
        "def full(*_): raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))\n"
        "caching.IndexDataCacheFile._save_data = full\n"
    )
    note = "kernel kernel could not be kept: No space left on device"
    run_with_kernels(tmp_path, f"{full}{RUN}assert compiled.cache_note() == {note!r}")


def test_a_kernel_that_kernels_alone_call_is_refused_by_name_in_python() -> None:
    """Before and after it is compiled; other kernels call it."""

    @compiled.njit(inner=True)
    def doubled(value: float) -> float:
        return 2 * value

    @compiled.njit()
    def quadrupled(value: float) -> float:
        return float(doubled(doubled(value)))

    with pytest.raises(TypeError, match="kernel doubled: other kernels alone may call it"):
        doubled(1.0)
    assert quadrupled(1.5) == 6.0
    with pytest.raises(TypeError, match="kernel doubled"):
        doubled(1.5)


def test_the_order_of_a_kernel_is_the_stable_one() -> None:
    """Of up to 40 entries, among them equal and infinite ones."""

    @compiled.njit()
    def ordered(keys: np.ndarray) -> np.ndarray:
        return compiled.stable_order(keys)  # type: ignore[no-any-return]

    rng = np.random.default_rng(1)
    for n in [*range(41)] * 5:
        keys = rng.choice([0.5, -2.0, 3.25, np.inf, -np.inf, *rng.random(n)], n)
        assert ordered(keys).tolist() == np.argsort(keys, kind="stable").tolist()
