"""Faults from outside: Ctrl-C, kill, a full disk, closed output and damaged caches, at random moments.

Each case runs a command of the program in a process group and a folder of its own, lets the fault happen, and
checks the exit code, that nothing is said but one line, that output files are whole or as they were, and that
neither processes nor temporary files are left. Case number i has seed S + i. Exit code: 0, or 1 if something
is wrong.
"""

from __future__ import annotations

import json
import os
import random
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

sys.path.extend([str(Path(__file__).parents[1]), str(Path(__file__).parents[2])])

import psutil

from trials.broken_files import write_all
from trials.campaign import Campaign, Trial, campaign_parser

PROGRAM = [sys.executable, "-m", "partitioner"]
OLD = '{"old": true}'
STARTED = 0.2  # seconds in which Python itself starts; Ctrl-C by then is nobody's
BY_SIGINT = (130, -signal.SIGINT)  # the same for a shell: Python may end itself by the signal
LONGEST = 120.0
COMMANDS = (
    "solve workload.json --output out.json",
    "solve workload.json --method ip --split free --time-limit 3 --output out.json",
    "solve workload.json --method ip --split free --backend cbc --time-limit 3 --output out.json",
    "solve workload.json --objective makespan --method heft --output out.json",
    "evaluate workload.json plan.json --bound 1",
    "simulate workload.json plan.json --schedule 1f1b --microbatches 4 --output out.json --trace trace.json",
    "compare workload.json --time-limit 1 --output out.json",
    "recommend workload.json --microbatches 4 --time-limit 2 --output out.json",
    "plan config.json --gpus 4 --device A100-80 --global-batch 8 --sequence 64 --output out.json",
    "explain workload.json plan.json --time-limit 2",
    "diff workload.json plan.json plan.json",
    "conflict workload.json --stages 9 --time-limit 2",
    "fewest-devices workload.json --max-time-per-sample 1000 --output out.json",
    "least-memory workload.json --max-time-per-sample 1000 --output out.json",
    "sweep spec.toml --output rows.jsonl --plans plans --processes 2 --no-warm-up",
    "export workload.json plan.json --to nodes --output out.csv",
    "plot workload.json plan.json --what loads --output out.svg",
    "report workload.json plan.json --output out.html",
    "methods",
)
SPEC = '[[workloads]]\nfile = "workload.json"\n[[pools]]\naccelerators = [1, 2]\n'
CONFIG = {
    "model_type": "gpt2", "n_embd": 64, "n_layer": 4, "n_head": 4, "vocab_size": 128, "n_positions": 64
}  # fmt: skip
OUTPUTS = ("out.json", "trace.json")


class Ended(NamedTuple):
    """How a command ended: its exit code, what it said on standard error, and the seconds that it ran."""

    code: int
    errors: str
    seconds: float


def interrupted(command: list[str], folder: Path, rng: random.Random, longest: float) -> tuple[str, str]:
    """Ctrl-C for the whole group: exit code 130 in a line, or the plan that was found by then."""
    ended = _run(command, folder, signal.SIGINT, STARTED + rng.random() * longest)
    lines = ended.errors.strip().splitlines()
    if ended.code in BY_SIGINT and "Traceback" not in ended.errors:
        return "130", "" if len(lines) <= 1 else f"{len(lines)} lines: {ended.errors[-300:]}"
    return _judged(ended, (0, 3, 4))


def killed(command: list[str], folder: Path, rng: random.Random, longest: float) -> tuple[str, str]:
    """A kill of the program alone: its processes end by themselves."""
    ended = _run(command, folder, signal.SIGKILL, rng.random() * longest, alone=True)
    return _judged(ended, (-9, 0, 2, 3, 4))


def without_room(command: list[str], folder: Path, rng: random.Random, longest: float) -> tuple[str, str]:
    """Standard output on a full disk."""
    ended = _run(command, folder, output="/dev/full")
    said = "standard output: cannot be written" in ended.errors
    return _judged(ended, (2, 3, 4) if said else (3, 4))


def without_reader(command: list[str], folder: Path, rng: random.Random, longest: float) -> tuple[str, str]:
    """Standard output whose reader has left: exit code 141 without a word."""
    ended = _run(command, folder, output=None)
    return _judged(ended, (0, 3, 4, 141))


def damaged(command: list[str], folder: Path, rng: random.Random, longest: float) -> tuple[str, str]:
    """A file of the cache of kernels that is cut or empty."""
    cache = folder / "cache"
    _run(command, folder, variables={"NUMBA_CACHE_DIR": str(cache)})
    files = sorted(path for path in cache.rglob("*.nb?") if path.is_file())
    for path in rng.sample(files, min(3, len(files))):
        content = path.read_bytes()
        path.write_bytes(content[: rng.choice((0, len(content) // 2))])
    ended = _run(command, folder, variables={"NUMBA_CACHE_DIR": str(cache)})
    return _judged(ended, (0, 3, 4))


def _judged(ended: Ended, codes: tuple[int, ...]) -> tuple[str, str]:
    """Return the exit code, and what is wrong if it is none of those expected or there is a traceback."""
    sound = ended.code in codes and "Traceback" not in ended.errors
    return f"exit {ended.code}", "" if sound else f"exit code {ended.code}: {ended.errors[-300:]}"


FAULTS: dict[str, Callable[[list[str], Path, random.Random, float], tuple[str, str]]] = {
    "Ctrl-C": interrupted,
    "kill": killed,
    "full disk": without_room,
    "closed output": without_reader,
    "damaged cache": damaged,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    parser = campaign_parser(__doc__, len(COMMANDS))
    parser.add_argument("--only", choices=FAULTS, help="this fault alone (default: all, mostly Ctrl-C)")
    names = sorted({line.split()[0] for line in COMMANDS})
    parser.add_argument("--command", choices=names, help="this command alone (default: all in turn)")
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell lets background programs ignore Ctrl-C
    lines = [line for line in COMMANDS if options.command in (None, line.split()[0])]
    return Campaign(options.cases).run(trials(options.seed, options.cases, options.only, lines))


def trials(
    first: int, count: int, only: str | None = None, lines: Sequence[str] = COMMANDS
) -> Iterator[Trial]:
    """One trial a seed: commands in turn."""
    longest: dict[str, float] = {}
    for seed in range(first, first + count):
        rng = random.Random(seed)
        fault = only or rng.choice(("Ctrl-C", "Ctrl-C", "Ctrl-C", *FAULTS))
        line = lines[seed % len(lines)]
        if line not in longest:
            with tempfile.TemporaryDirectory() as name:
                longest[line] = _run(_words(line), _prepared(Path(name))).seconds
        outcome, wrong = _trial(fault, line, rng, longest[line])
        alone = "" if len(lines) == len(COMMANDS) else f" --command {line.split()[0]}"
        again = f"# python scripts/trials/faults.py --cases 1 --seed {seed} --only '{fault}'{alone}"
        yield Trial(f"{fault}, {line.split()[0]}", outcome, wrong, again if wrong else "")


def _trial(fault: str, line: str, rng: random.Random, longest: float) -> tuple[str, str]:
    with tempfile.TemporaryDirectory() as name:
        folder = _prepared(Path(name))
        try:
            outcome, wrong = FAULTS[fault](_words(line), folder, rng, longest)
        except subprocess.TimeoutExpired:
            return "late", f"still there after {LONGEST:g} s"
        return outcome, wrong or _left(folder)


def _words(line: str) -> list[str]:
    return [*PROGRAM, *shlex.split(line)]


def _prepared(folder: Path) -> Path:
    """Fill a folder with a file of every format, old outputs, and a place for temporary files."""
    write_all(folder, {})
    (folder / "spec.toml").write_text(SPEC, encoding="utf-8")
    (folder / "config.json").write_text(json.dumps(CONFIG), encoding="utf-8")
    for name in OUTPUTS:
        (folder / name).write_text(OLD, encoding="utf-8")
    (folder / "tmp").mkdir()
    return folder


def _run(
    command: list[str],
    folder: Path,
    number: int | None = None,
    after: float = 0.0,
    alone: bool = False,
    output: str | None = os.devnull,
    variables: dict[str, str] | None = None,
) -> Ended:
    """Run a command, send it a signal after a time, and wait for its end; `output` None is a closed pipe."""
    places = os.pathsep.join([str(Path(__file__).parents[2]), *filter(None, sys.path)])
    given = {**os.environ, "TMPDIR": str(folder / "tmp"), "PYTHONPATH": places, **(variables or {})}
    began = time.perf_counter()
    with open(os.devnull if output is None else output, "wb") as sink:  # noqa: PTH123
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=given,
            stdout=subprocess.PIPE if output is None else sink,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    if process.stdout is not None:
        process.stdout.close()
        process.stdout = None
    if number is not None:
        time.sleep(after)
        if process.poll() is None:
            (os.kill if alone else os.killpg)(process.pid, number)
    errors = process.communicate(timeout=LONGEST)[1].decode(errors="replace")
    return Ended(process.returncode, errors, time.perf_counter() - began)


def _left(folder: Path) -> str:
    """Return what is left behind: files that are half written, temporary files, processes."""
    for name in OUTPUTS:
        try:
            json.loads((folder / name).read_text(encoding="utf-8"))
        except ValueError:
            return f"{name} is half written"
    end = time.perf_counter() + 5.0
    while left := _processes(folder) + [path.name for path in (folder / "tmp").iterdir()]:
        if time.perf_counter() > end:
            return f"left behind: {left}"
        time.sleep(0.05)
    hidden = [path.name for path in folder.iterdir() if path.name.startswith(".")]
    return f"left behind: {hidden}" if hidden else ""


def _processes(folder: Path) -> list[str]:
    """Return the processes that work in the folder."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.cwd() == str(folder.resolve()):
                found.append(process.name())
        except psutil.Error:  # it has ended, or is somebody else's
            continue
    return found


if __name__ == "__main__":
    sys.exit(main())
