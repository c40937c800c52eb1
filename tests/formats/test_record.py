"""Fields are converted or noted as a flaw with the rule, never both and never neither."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from partitioner.base.errors import Flaw
from partitioner.formats.record import (
    Record,
    RuleBrokenError,
    amount,
    flag,
    identifier,
    listing,
    mapping,
    number,
    pair,
    text,
    whole,
)

Convert = Callable[[Any], Any]


@pytest.mark.parametrize(
    ("convert", "value", "expected"),
    [
        (number, 3, 3.0),
        (number, -0.5, -0.5),
        (amount, 0, 0.0),
        (whole, 4.0, 4),
        (whole, -2, -2),
        (flag, True, True),
        (flag, 0, False),
        (flag, 1.0, True),
        (text, "é", "é"),
        (identifier, "x", "x"),
        (identifier, -7, -7),
        (identifier, 2**63 - 1, 2**63 - 1),
        (listing, [1], [1]),
        (mapping, {"a": 1}, {"a": 1}),
        (pair, [1, 2.5], (1.0, 2.5)),
    ],
)
def test_good_values_are_converted(convert: Convert, value: Any, expected: Any) -> None:
    assert convert(value) == expected
    assert type(convert(value)) is type(expected)


@pytest.mark.parametrize(
    ("convert", "value", "rule"),
    [
        (number, True, "must be a number"),
        (number, "3", "must be a number"),
        (number, None, "must be a number"),
        (number, 10**400, "must be a finite number of at least 0"),
        (amount, -1, "must be a finite number of at least 0"),
        (amount, float("inf"), "must be a finite number of at least 0"),
        (whole, 1.5, "must be a whole number"),
        (whole, True, "must be a whole number"),
        (whole, float("inf"), "must be a whole number"),
        (flag, 2, "must be true or false, or 1 or 0"),
        (flag, "true", "must be true or false, or 1 or 0"),
        (flag, None, "must be true or false, or 1 or 0"),
        (text, 5, "must be a text"),
        (text, "\ud800", "must be a text without lone surrogates"),
        (identifier, 1.0, "must be an integer or a text"),
        (identifier, False, "must be an integer or a text"),
        (identifier, [], "must be an integer or a text"),
        (identifier, 2**63, "must fit 64 bits"),
        (identifier, "\udfff", "must be a text without lone surrogates"),
        (listing, {}, "must be a list"),
        (mapping, [], "must be a JSON object"),
        (pair, [1], "must be a list of two numbers"),
        (pair, [1, -2], "must be a finite number of at least 0"),
    ],
)
def test_bad_values_break_a_rule(convert: Convert, value: Any, rule: str) -> None:
    with pytest.raises(RuleBrokenError) as caught:
        convert(value)
    assert str(caught.value) == rule


def test_take_converts_a_field() -> None:
    flaws: list[Flaw] = []
    assert Record({"size": 3}, "node 1", flaws).take("size", number, 0.0) == 3.0
    assert flaws == []


def test_take_notes_a_wrong_field_and_gives_the_default() -> None:
    flaws: list[Flaw] = []
    assert Record({"size": "big"}, "node 1", flaws).take("size", number, 0.0) == 0.0
    assert flaws == [Flaw("node 1", "size", "'big'", "must be a number")]


def test_take_notes_a_missing_field_unless_it_is_optional() -> None:
    flaws: list[Flaw] = []
    record = Record({}, "node 1", flaws)
    assert record.take("size", number, 1.0, required=False) == 1.0
    assert record.take("cost", number, 2.0) == 2.0
    assert flaws == [Flaw("node 1", "cost", "", "is missing")]


@pytest.mark.parametrize("written", ["cpulatency", "CPULATENCY", "cpu_latency", "CPU-latency"])
def test_a_field_in_another_spelling_is_advice_for_a_missing_one(written: str) -> None:
    flaws: list[Flaw] = []
    Record({written: 1}, "node 1", flaws).take("cpuLatency", number, 0.0)
    assert flaws[0].rule == f"is missing (found {written}; upper and lower case matter)"


def test_other_fields_are_kept_but_misspelt_ones_are_noted() -> None:
    flaws: list[Flaw] = []
    others = Record({"id": 1, "note": 2, "Size": 3}, "node 1", flaws).others(("id", "size"))
    assert others == {"note": 2, "Size": 3}
    assert flaws == [Flaw("node 1", "Size", "", "is not a field; did you mean size?")]


@pytest.mark.parametrize("data", [None, [], "text", 5])
def test_what_is_no_object_is_one_flaw(data: Any) -> None:
    """Its missing fields are not listed one by one."""
    flaws: list[Flaw] = []
    Record(data, "nodes[3]", flaws).take("id", identifier, None)
    assert flaws == [Flaw("nodes[3]", "", repr(data), "must be a JSON object")]
