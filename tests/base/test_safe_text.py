"""Control characters are written out, formulas become texts, and all other texts stay as they are."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partitioner.base.safe_text import FORMULA, TURNING, cell, visible

HARMFUL = {*map(chr, range(32)), *map(chr, range(127, 160)), *TURNING} - {"\n", "\t"}


@given(st.text(st.characters()))
def test_what_is_shown_holds_nothing_that_a_terminal_obeys(text: str) -> None:
    found = visible(text)
    assert not HARMFUL & set(found)
    assert found.encode("utf-8").decode("utf-8") == found
    if not HARMFUL & set(text) and not any("\ud800" <= each <= "\udfff" for each in text):
        assert found == text


@pytest.mark.parametrize("text", ["\x1b[2J\x1b]0;title\x07", "\r hidden", "\x9b31m", "a\u202eb", "\ud800"])
def test_harmful_texts_are_written_out(text: str) -> None:
    assert visible(text) != text and visible(text).isascii()


@given(st.one_of(st.text(), st.integers(), st.floats(allow_nan=False), st.none()))
def test_no_text_of_a_cell_is_a_formula(value: object) -> None:
    found = cell(value)
    if isinstance(value, str):
        assert found in (value, f"'{value}") and (len(value) < 2 or not str(found).startswith(FORMULA))
        text = io.StringIO(newline="")
        csv.writer(text).writerow([found, ""])
        assert next(csv.reader(io.StringIO(text.getvalue(), newline="")))[0] == found
    else:
        assert found is value
