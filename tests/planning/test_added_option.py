"""An option is one record: whoever adds one changes nothing else for its checks, default, effect and help."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from partitioner import Devices, Graph, OptionError, compare_methods, solve
from partitioner.cli.arguments import ALL
from partitioner.cli.command_line import main
from partitioner.extensions import registered
from partitioner.methods.info import MethodInfo
from partitioner.methods.registry import METHODS
from partitioner.planning.objectives import THROUGHPUT
from partitioner.planning.option import WANTED, Option, with_methods
from partitioner.planning.option_records import OPTIONS
from partitioner.planning.option_rules import SWITCH, Rule, count, name_among
from partitioner.planning.options import read_options

WORKLOAD = "instances/gnmt_inference.json"
GRAPH = Graph.from_arrays({"accelerator": [3.0, 1.0, 2.0]}, [(0, 1), (1, 2)], cost=0.5)
DEVICES = Devices.accelerated(2)
ROUNDS = Option(
    "rounds",
    3,
    count(9),
    "do this many rounds",
    WANTED,
    meaning="of two moves each",
    effect=with_methods("dp", refused=True),
    metavar="ROUNDS",
)
Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(OPTIONS, "rounds", ROUNDS)


def help_of(command: str, capsys: Captured) -> str:
    with pytest.raises(SystemExit):
        main([command, ALL])
    return capsys.readouterr().out


def given(**options: Any) -> Any:
    return read_options(THROUGHPUT, options)["rounds"]


def test_it_has_its_default_and_takes_a_value() -> None:
    assert (given(), given(rounds=5)) == (3, 5)


@pytest.mark.parametrize("value", [0, 10, 2.0, "3", None])
def test_its_values_are_checked(value: Any) -> None:
    with pytest.raises(OptionError, match=r"rounds = .*: must be an integer of at least 1 and at most 9$"):
        solve(GRAPH, DEVICES, rounds=value)


def test_it_is_known_to_who_misspells_it() -> None:
    with pytest.raises(OptionError, match=r"option 'round' is unknown: .*; did you mean 'rounds'\?"):
        solve(GRAPH, DEVICES, round=3)


def test_it_is_refused_where_it_has_no_effect() -> None:
    words = "rounds = 5 has no effect with method single_device, .*, only with method dp$"
    with pytest.raises(OptionError, match=words):
        solve(GRAPH, DEVICES, method="single_device", rounds=5)
    assert solve(GRAPH, DEVICES, method="single_device", rounds=3).notes == ()
    plan = solve(GRAPH, DEVICES, method="dp", rounds=5)
    assert plan.options["rounds"] == 5 and not [note for note in plan.notes if "rounds" in note]


def test_it_is_noted_where_that_does_no_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    noted = Option("rounds", 3, count(9), "do this many rounds", WANTED, effect=with_methods("dp"))
    monkeypatch.setitem(OPTIONS, "rounds", noted)
    (note,) = solve(GRAPH, DEVICES, method="single_device", rounds=5).notes
    assert note.startswith("rounds = 5 has no effect with method single_device")


def test_a_method_of_another_package_may_take_account_of_it() -> None:
    one = METHODS["single_device"]
    mine = MethodInfo("mine", one.place, one.objectives, one.splits, one.backends, "", options=("rounds",))
    with registered(mine):
        assert solve(GRAPH, DEVICES, method="mine", rounds=5).options["rounds"] == 5


def test_comparisons_give_it_to_the_methods_that_know_it() -> None:
    found = compare_methods(GRAPH, DEVICES, methods=["dp", "single_device"], rounds=5)
    plans = {one.method: one.plan for one in found.compared}
    assert {name: plan and plan.options.get("rounds") for name, plan in plans.items()} == {
        "dp": 5,
        "single_device": None,
    }


@pytest.mark.parametrize("command", ["solve", "compare"])
def test_the_command_line_has_it_in_its_section(command: str, capsys: Captured) -> None:
    text = help_of(command, capsys)
    section = text.split(f"{WANTED}:")[1].split("\n\n")[0]
    words = "--rounds ROUNDS do this many rounds (default: 3, of two moves each)"
    assert words in " ".join(section.split())


def test_the_command_line_reads_it(capsys: Captured, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    words = ["solve", WORKLOAD, "--method", "dp"]
    assert main([*words, "--rounds", "5", "--output", str(path)]) == 0
    assert json.loads(path.read_text())["options"]["rounds"] == 5
    capsys.readouterr()
    assert main([*words, "--rounds", "0"]) == 2
    assert "rounds = 0: must be an integer of at least 1 and at most 9" in capsys.readouterr().err
    assert main(["solve", WORKLOAD, "--method", "single_device", "--rounds", "5"]) == 2
    assert "rounds = 5 has no effect with method single_device" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("default", "rule", "typed", "words"),
    [
        (False, SWITCH, "--rounds", "do rounds (default: False)"),
        (True, SWITCH, "--no-rounds", "do not do rounds (default: True)"),
        ("few", name_among(("few", "many")), "--rounds {few,many}", "do rounds (default: few)"),
        (None, count(9, optional=True), "--rounds N", "do rounds (default: None)"),
    ],
)
def test_its_rule_says_how_it_is_typed(
    default: Any, rule: Rule, typed: str, words: str, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setitem(OPTIONS, "rounds", Option("rounds", default, rule, "do rounds", WANTED))
    assert f"{typed} {words}" in " ".join(help_of("solve", capsys).split())
    assert given() == default


def test_an_object_is_for_python_only(monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    rule = Rule("a function", callable)
    monkeypatch.setitem(OPTIONS, "rounds", Option("rounds", len, rule, "do rounds", WANTED))
    assert "--rounds" not in help_of("solve", capsys)
    assert given(rounds=max) is max
