"""Options have their defaults, and a value that one may not have is named with what it may be."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from partitioner import OptionError, PartitionerError, solve
from partitioner.methods.placing import Placing
from partitioner.planning.objectives import OBJECTIVES
from partitioner.planning.option import SECTIONS, Option
from partitioner.planning.option_records import OPTIONS
from partitioner.planning.options import check_values, default_options, read_options
from partitioner.planning.request import fields_of
from partitioner.workload.pipeline_settings import Regime

PARAMETERS = ("time_limit", "gap", "seed", "workers")


def read(objective: str = "throughput", **given: Any) -> dict[str, Any]:
    """Read options that are the usual ones but for those given."""
    known = {name: given.pop(name) for name in PARAMETERS if name in given}
    return read_options(OBJECTIVES[objective], given, **known)


def test_defaults_are_filled_in() -> None:
    options = read()
    assert options["memory_budget"] == 4 * 2**30
    assert default_options().items() <= options.items()
    assert (Regime(**fields_of(Regime, options)), Placing(**fields_of(Placing, options))) == (
        Regime(),
        Placing(),
    )


def test_given_options_replace_the_defaults() -> None:
    given: dict[str, Any] = {"granularity": "layer", "orders": 3, "replicas": 2, "refine": True, "gap": 0.5}
    options = read(**given)
    assert options == {**read(), **given}
    assert Regime(**fields_of(Regime, options)) == Regime(replicas=2)
    assert Placing(**fields_of(Placing, options)) == Placing(refine=True)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("time_limit", 0.001),
        ("time_limit", 10**9),
        ("gap", 0),
        ("gap", 0.999),
        ("seed", 2**100),
        ("workers", 1),
    ],
)
def test_values_at_the_edge_are_taken(name: str, value: Any) -> None:
    assert read(**{name: value})[name] == value


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("time_limit", 0, "a positive number of seconds, at most 1,000,000,000"),
        ("time_limit", -1.0, "a positive number of seconds"),
        ("time_limit", float("nan"), "a positive number of seconds"),
        ("time_limit", float("inf"), "a positive number of seconds"),
        ("time_limit", 10**400, "a positive number of seconds"),
        ("time_limit", "10", "a positive number of seconds"),
        ("time_limit", True, "a positive number of seconds"),
        ("gap", 1, "a fraction from 0 to less than 1"),
        ("gap", -0.1, "a fraction from 0 to less than 1"),
        ("gap", None, "a fraction from 0 to less than 1"),
        ("gap", float("nan"), "a fraction from 0 to less than 1"),
        ("seed", -1, "an integer of at least 0"),
        ("seed", 1.0, "an integer of at least 0"),
        ("seed", None, "an integer of at least 0"),
        ("workers", 0, "an integer of at least 1"),
        ("workers", 2.0, "an integer of at least 1"),
        ("granularity", "node", "one of operator, layer"),
        ("granularity", [], "one of operator, layer"),
        ("memory_budget", 0, "an integer of at least 1"),
        ("memory_budget", "4 GiB", "an integer of at least 1"),
        ("step_limit", -5, "an integer of at least 1"),
        ("orders", True, "an integer of at least 1"),
    ],
)
def test_a_value_that_may_not_be_is_named(name: str, value: Any, rule: str) -> None:
    with pytest.raises(OptionError) as caught:
        read(**{name: value})
    assert str(caught.value).startswith(f"{name} = ") and rule in str(caught.value)


def test_a_number_too_long_to_print_is_refused_too() -> None:
    with pytest.raises(OptionError, match="gap = a very large integer: must be a fraction"):
        read(gap=10**5000)


def test_an_unknown_option_is_named_with_the_known_ones() -> None:
    with pytest.raises(OptionError, match=r"option 'granuarity' is unknown: must be one of .*; did you mean"):
        read(granuarity="layer")


@pytest.mark.parametrize("option", OPTIONS.values(), ids=OPTIONS)
def test_every_default_may_be(option: Option) -> None:
    """And is known as the default, while a value of no known type may not be; a start is read elsewhere."""
    option.check(option.default)
    assert option.is_default(option.default) and not option.is_default(object())
    if option.name != "warm_start":
        with pytest.raises(OptionError, match=f"^{option.name} = .*: must be "):
            option.check(object())


def test_the_words_for_users_of_solve_name_every_option() -> None:
    """Its parameters are the records marked as such; its docstring names all others."""
    names = set(inspect.signature(solve).parameters) - {"graph", "devices", "on_progress", "stop"}
    keywords = {name for name, option in OPTIONS.items() if option.keyword}
    assert names == keywords | {"method_options"}
    text = inspect.getdoc(solve) or ""
    assert [name for name in OPTIONS if name not in keywords and f"``{name}``" not in text] == []


def test_every_section_has_options() -> None:
    assert {option.section for option in OPTIONS.values()} == set(SECTIONS)


def test_check_values_names_the_option() -> None:
    with pytest.raises(OptionError, match="backend = 5: must be a text"):
        check_values(backend=5)


def test_an_option_error_is_a_value_error_too() -> None:
    assert issubclass(OptionError, ValueError) and issubclass(OptionError, PartitionerError)
