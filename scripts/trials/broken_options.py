"""Command lines with something wrong in their words or in a file they name."""

from __future__ import annotations

import contextlib
import io
import json
import random
import shlex
from pathlib import Path

from partitioner.cli.arguments import command_parser
from partitioner.cli.command_line import COMMANDS, main
from trials.broken_files import broken, contents, file_name

OLD = "what was there before"
CODES = (0, 2, 3, 4)
OUTPUTS = ("out.json", "trace.json", "out.csv", "out.png", "out.svg")
QUICK = "--time-limit 3"
LINES = (
    f"solve workload.json {QUICK} --output out.json",
    f"solve workload.json --devices devices.json --constraints constraints.json --format json {QUICK}",
    f"solve workload.json --replicas 2 --schedule 1f1b --microbatches 4 --output out.json {QUICK}",
    f"solve workload.json --objective latency --method latency_dp --output out.json {QUICK}",
    f"solve workload.json --objective makespan --method heft --link-slope 0.5 --output out.json {QUICK}",
    f"solve workload.json --objective batch --microbatches 4 --stages 2 --format json {QUICK}",
    f"solve workload.json --objective gpipe --split free --format json {QUICK}",
    f"solve profile.txt --bandwidth 1e6 --accelerators 2 --memory 1e9 {QUICK}",
    "evaluate workload.json plan.json --format json",
    "evaluate workload.json split.json --bound 0.2",
    "evaluate workload.json latency.json --objective latency --format json",
    "evaluate workload.json makespan.json --objective makespan --contention",
    "simulate workload.json plan.json --schedule 1f1b --microbatches 4 --output out.json --trace trace.json",
    "simulate workload.json split.json --schedule table.csv --format json --csv out.csv",
    "simulate workload.json plan.json --compare --microbatches 4",
    "compare workload.json --methods dp,heft,single_device --time-limit 3 --format json",
    "plot workload.json plan.json --what loads --output out.png",
    "plot workload.json plan.json --what timeline --microbatches 3 --output out.svg",
    "methods --format json",
)
WORDS = (
    *("0", "-1", "1", "2", "nan", "inf", "-inf", "1e400", "1e-320", "9" * 30, str(2**31), str(10**11)),
    *(
        "",
        "x",
        "dp,,x",
        "/",
        "/dev/null/x",
        "no/such/file.json",
        ".",
        "\x00",
        "\ud800",
        "é",
        "-",
        "--",
        "a b",
    ),
    *("out.json", "workload.json", "plan.json", "table.csv", "True", "None", "[]", "{}", "*", "accelerator0"),
)


def some_line(rng: random.Random) -> tuple[list[str], dict[str, bytes]]:
    """A command line, and other contents for the files that it names."""
    words = shlex.split(rng.choice(LINES))
    files: dict[str, bytes] = {}
    if rng.random() < 0.4:
        named = [kind for kind in contents() if file_name(kind) in words]
        files = {kind: broken(kind, rng) for kind in named[: 1 if rng.random() < 0.9 else None]}
    if not files or rng.random() < 0.3:
        for _ in range(rng.choice((1, 1, 2))):
            words = _with_a_flaw(words, rng)
    return words, files


def _with_a_flaw(words: list[str], rng: random.Random) -> list[str]:
    place = rng.randrange(1, len(words)) if len(words) > 1 else 0
    known = [name for name in _options(words[0]) if name not in ("-h", "--help")]
    changes = [
        [*words[:place], *words[place + 1 :]],
        [*words[:place], rng.choice(WORDS), *words[place + 1 :]],
        [*words[:place], rng.choice(WORDS), *words[place + 1 :]],
        [*words, rng.choice(known or ["--x"])],
        [*words, rng.choice(known or ["--x"]), rng.choice(WORDS)],
        [*words, rng.choice(known or ["--x"]), rng.choice(WORDS)],
    ]
    return rng.choice(changes)


def _options(command: str) -> list[str]:
    choices = command_parser(COMMANDS)._subparsers._group_actions[0].choices  # type: ignore[union-attr]
    found = choices.get(command) if isinstance(choices, dict) else None
    return sorted(found._option_string_actions) if found is not None else []


def run_line(words: list[str], folder: Path) -> tuple[str, str]:
    """Run it in that folder: how it ended, and what is wrong with that."""
    for name in OUTPUTS:
        (folder / name).write_text(OLD, encoding="utf-8")
    before = {path.name for path in folder.iterdir()}
    out, err = io.StringIO(), io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main(words)
        except SystemExit as left:
            code = left.code if isinstance(left.code, int) else 2
    wrong = _wrong_end(words, code, out.getvalue(), err.getvalue()) or _wrong_files(folder, before, code)
    return f"exit {code}", wrong


def _wrong_end(words: list[str], code: int, out: str, err: str) -> str:
    if code not in CODES:
        return f"exit code {code}"
    if code and not err.strip():
        return f"exit code {code} without a word"
    if "Traceback" in err:
        return err.strip().splitlines()[-1]
    if not code and words[-2:] == ["--format", "json"]:
        json.loads(out)
    return ""


def _wrong_files(folder: Path, before: set[str], code: int) -> str:
    """What is left of output files: as they were, or whole."""
    for name in OUTPUTS:
        content = (folder / name).read_bytes()
        if content != OLD.encode() and not _whole(name, content):
            return f"{name} is half written"
    new = {path.name for path in folder.iterdir()} - before
    hidden = [name for name in new if name.startswith(".")]
    return f"{hidden[0]} is left behind" if hidden else ""


def _whole(name: str, content: bytes) -> bool:
    if content.startswith(b"\x89PNG"):
        return b"IEND" in content[-16:]
    if content.startswith((b"<?xml", b"<svg")):
        return content.rstrip().endswith(b"</svg>")
    if name.endswith(".json") and content.startswith(b"{"):
        json.loads(content)
    return bool(content)
