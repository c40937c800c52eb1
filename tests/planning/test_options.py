"""Options have their defaults, and a value that one may not have is named with what it may be."""

from __future__ import annotations

from typing import Any

import pytest

from partitioner import OptionError, PartitionerError
from partitioner.methods.placing import Placing
from partitioner.planning.objectives import OBJECTIVES
from partitioner.planning.options import DEFAULTS, Options, read_options
from partitioner.workload.pipeline_settings import Regime


def read(**given: Any) -> Options:
    """Read options that are the usual ones but for those given."""
    usual: dict[str, Any] = {
        "objective": "throughput",
        "time_limit": None,
        "gap": 0.0,
        "seed": 0,
        "workers": None,
    }
    known = {name: given.pop(name, value) for name, value in usual.items()}
    known["objective"] = OBJECTIVES[known["objective"]]
    return read_options(**known, method_options=given)


def test_defaults_are_filled_in() -> None:
    options = read()
    assert not options.by_layer
    assert options.memory_budget == DEFAULTS["memory_budget"] == 4 * 2**30
    assert (options.step_limit, options.orders) == (DEFAULTS["step_limit"], DEFAULTS["orders"])


def test_given_options_replace_the_defaults() -> None:
    options = read(granularity="layer", memory_budget=1, step_limit=2, orders=3)
    assert options == Options(
        by_layer=True,
        memory_budget=1,
        step_limit=2,
        orders=3,
        contiguous_cpus=True,
        deterministic=False,
        contiguous_backward=False,
        subgraphs_per_accelerator=1,
        regime=Regime(),
        placing=Placing(),
    )


def test_subgraphs_are_for_latency() -> None:
    assert read(objective="latency", subgraphs_per_accelerator=3).subgraphs_per_accelerator == 3
    with pytest.raises(
        OptionError, match="subgraphs_per_accelerator = 2: must be 1 for objective 'throughput'"
    ):
        read(subgraphs_per_accelerator=2)


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
    assert isinstance(read(**{name: value}), Options)


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
    with pytest.raises(
        OptionError, match="option 'granuarity' is unknown: must be one of granularity, memory"
    ):
        read(granuarity="layer")


def test_an_option_error_is_a_value_error_too() -> None:
    assert issubclass(OptionError, ValueError) and issubclass(OptionError, PartitionerError)
