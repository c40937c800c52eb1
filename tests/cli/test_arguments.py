"""Every argument of a command has a help text with its default; ``compare`` takes what ``solve`` takes."""

from __future__ import annotations

import argparse
import inspect
import re
from collections.abc import Iterator

import pytest

from partitioner.cli.argument import Section, add_sections, flag, value
from partitioner.cli.arguments import ALL, command_parser
from partitioner.cli.command_line import COMMANDS, main
from partitioner.cli.shared_arguments import PROFILE
from partitioner.planning.comparison.methods import compare_methods
from partitioner.planning.option_records import OPTIONS

METAPHORS = (
    *("door", "room", "wish", "word", "words", "wall", "hunt", "none such", "so many", "beside", "at hand"),
    *("as usual", "usual", "let be"),
)
DEFAULT = re.compile(r"\(default: (.+)\)$")
REPLACED = {"--method": "--methods"}
CHANGED = ("--split", "--time-limit", "--output")  # compare says what they do with several plans
PYTHON_ONLY = ("warm_start", "transfers", "placer")  # objects


def parsers() -> dict[str, argparse.ArgumentParser]:
    """The parser of every command, by name."""
    (found,) = (action for action in command_parser(COMMANDS, [ALL])._actions if action.choices)
    assert isinstance(found.choices, dict)
    return found.choices


def arguments_of(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """All but ``--help``, which argparse adds."""
    return (action for action in parser._actions if action.dest != "help")


def named(kind: object) -> str:
    """The name of a type or of a check of texts."""
    return getattr(kind, "__qualname__", "")


def faults(action: argparse.Action) -> list[str]:
    """What is wrong with the help of an argument."""
    text = action.help or ""
    stated = DEFAULT.search(text)
    found = [] if text else ["no help"]
    found += [f"the metaphor {each!r}" for each in METAPHORS if re.search(rf"\b{each}\b", text)]
    if stated is None and not action.required:
        found.append("no default stated")
    default = f"{action.default:g}" if isinstance(action.default, float) else action.default
    if stated and default is not None and re.split(r"[, ]", stated[1])[0] != str(default):
        found.append(f"the default is {default}")
    return found


def broken(*arguments: object) -> list[str]:
    """The faults of one argument in a parser of its own."""
    parser = argparse.ArgumentParser()
    add_sections(parser, [Section("", tuple(arguments))])  # type: ignore[arg-type]
    return [fault for action in arguments_of(parser) for fault in faults(action)]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_argument_is_explained_with_its_default(command: str) -> None:
    found = {action.dest: faults(action) for action in arguments_of(parsers()[command])}
    assert len(found) >= 2
    assert {name: words for name, words in found.items() if words} == {}


def test_every_fault_of_a_help_text_is_found() -> None:
    assert broken(value("--x", "")) == ["no help", "no default stated"]
    assert broken(flag("--x", "do it")) == ["no default stated"]
    assert broken(value("--x", "use this beside it (default: 1)", default=1)) == ["the metaphor 'beside'"]
    assert broken(value("--x", "use this (default: 1)", default=2)) == ["the default is 2"]
    assert broken(value("--x", "use this (default: 0.5, half)", default=0.5)) == []


def test_the_list_of_commands_explains_each() -> None:
    assert set(parsers()) == set(COMMANDS)
    text = " ".join(command_parser(COMMANDS).format_help().split())
    assert all(
        parser.description.rstrip(".")[1:] in text for parser in parsers().values() if parser.description
    )


def test_compare_takes_what_solve_takes() -> None:
    """The same options with the same help, types and choices, but for those that are about one plan."""
    solve, compare = (
        {each.option_strings[0]: each for each in arguments_of(parsers()[name]) if each.option_strings}
        for name in ("solve", "compare")
    )
    assert list(compare) == [*(REPLACED.get(name, name) for name in solve), "--csv"]
    for name, one in solve.items():
        other = compare[REPLACED.get(name, name)]
        if name not in REPLACED:
            assert (one.dest, named(one.type), one.choices) == (other.dest, named(other.type), other.choices)
        if name not in REPLACED and name not in CHANGED:
            assert (one.help, one.default) == (other.help, other.default)


def test_every_option_of_the_library_has_one_of_solve() -> None:
    """But for objects that a shell cannot write; each stands in its section and is None if not given.

    Those that other commands take with the workload stand with the options of its file.
    """
    groups = parsers()["solve"]._action_groups
    known = {action.dest: (group.title, action) for group in groups for action in group._group_actions}
    assert set(OPTIONS) - set(known) == set(PYTHON_ONLY)
    for name in OPTIONS.keys() & known.keys() - {"constraints"}:
        title, action = known[name]
        section = PROFILE.title if OPTIONS[name].of_file else OPTIONS[name].section
        assert (title, action.default) == (section, None)


def test_a_switch_stands_for_what_is_not_its_default() -> None:
    options = parsers()["solve"].parse_args(["w", "--refine", "--scattered-cpus", "--no-uniform"])
    assert (options.refine, options.contiguous_cpus, options.uniform) == (True, False, False)
    assert (options.fuse, options.reserve_memory) == (None, None)


def test_the_limit_of_compare_is_what_its_help_says() -> None:
    (action,) = (each for each in arguments_of(parsers()["compare"]) if each.dest == "time_limit")
    limit = inspect.signature(compare_methods).parameters["time_limit"].default
    assert f"(default: {limit:g})" in (action.help or "")


@pytest.mark.parametrize("columns", ["80", "160"])
@pytest.mark.parametrize("command", COMMANDS)
def test_help_fits_the_terminal(command: str, columns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    lines = parsers()[command].format_help().splitlines()
    assert max(map(len, lines)) <= int(columns)
    assert lines[0].startswith(f"usage: partitioner {command} ")


def test_the_short_help_of_a_command_has_the_common_options(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("solve", "compare", "sweep", "fewest-devices", "least-memory"):
        with pytest.raises(SystemExit):
            main([command, "--help"])
        short = capsys.readouterr().out
        with pytest.raises(SystemExit):
            main([command, ALL])
        whole = capsys.readouterr().out
        assert len(short.splitlines()) < min(100, len(whole.splitlines()) / 2)
        assert f"'partitioner {command} {ALL}' has all options" in " ".join(short.split())
        assert "--output" in short and "--time-limit" in short and "--seed" not in short and "--seed" in whole
