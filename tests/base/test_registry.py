"""A registry has own entries, added ones and those of entry points; a broken one changes nothing for them."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from partitioner import OptionError
from partitioner.base.registry import Registry
from tests.installed import install

GROUP = "partitioner.test_sorts"
SOUND = """
from tests.base.test_registry import Sort
bubble, heap, nameless, quick = Sort("bubble"), Sort("heap"), Sort(""), Sort("quick")
other = Sort("something else")
text = "no sort"
"""
MODULES = {"sound_sorts": SOUND, "raising_sorts": "1 / 0", "leaving_sorts": "import sys; sys.exit(3)"}
POINTS = """
bubble = sound_sorts:bubble
heap = sound_sorts:heap
quick = sound_sorts:quick
renamed = sound_sorts:other
text = sound_sorts:text
absent = sound_sorts:absent
missing = a_module_that_is_not_there:sort
raising = raising_sorts:sort
leaving = leaving_sorts:sort
"""
REASONS = {
    "quick": "another sort has that name",
    "renamed": "name = 'something else': must be the name of the entry point",
    "text": "must be a Sort, not of type str",
    "absent": "AttributeError: ",
    "missing": "ModuleNotFoundError: No module named 'a_module_that_is_not_there'",
    "raising": "ZeroDivisionError: ",
    "leaving": "SystemExit: 3",
}


@dataclass(frozen=True)
class Sort:
    """An entry."""

    name: str


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Registry[Sort]:
    """A registry of one own entry where a distribution with sound and broken entry points is installed."""
    install(tmp_path / "site", "acme-sorts", MODULES, {GROUP: POINTS})
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    for module in MODULES:
        monkeypatch.delitem(sys.modules, module, raising=False)
    return Registry("sort", GROUP, Sort, [Sort("quick")], reserved=("auto",))


def test_names_are_the_own_then_the_added_then_those_of_entry_points(registry: Registry[Sort]) -> None:
    registry.add(Sort("radix"))
    assert list(registry) == ["quick", "radix", "bubble", "heap"] and len(registry) == 4
    assert registry["heap"] == Sort("heap") and "tim" not in registry


def test_every_broken_entry_point_is_listed_with_its_reason(registry: Registry[Sort]) -> None:
    found = {entry.name: entry for entry in registry.broken()}
    assert set(found) == set(REASONS)
    for name, reason in REASONS.items():
        line = str(found[name])
        assert line.startswith(f"sort {name} of distribution acme-sorts is refused: {reason}")
        assert "\n" not in line


def test_own_entries_are_found_without_a_look_at_distributions(registry: Registry[Sort]) -> None:
    assert registry["quick"] == Sort("quick") and "quick" in registry
    registry.check("sort", "quick")
    assert "sound_sorts" not in sys.modules


def test_a_sound_entry_point_loads_no_other_module(registry: Registry[Sort]) -> None:
    assert registry["bubble"] == Sort("bubble")
    assert "sound_sorts" in sys.modules and "raising_sorts" not in sys.modules


def test_entry_points_are_read_once(registry: Registry[Sort], tmp_path: Path) -> None:
    assert len(registry) == 3
    install(tmp_path / "site", "later-sorts", {"later_sorts": SOUND}, {GROUP: "later = later_sorts:heap"})
    assert len(registry) == 3 and len(registry.broken()) == len(REASONS)


def test_a_broken_one_is_refused_with_its_reason_when_it_is_asked_for(registry: Registry[Sort]) -> None:
    with pytest.raises(OptionError, match=r"order = 'raising': sort raising of distribution acme-sorts is"):
        registry.check("order", "raising")
    with pytest.raises(OptionError, match="order = 'hep': must be one of any, quick, bubble, heap; did you"):
        registry.check("order", "hep", "any")
    registry.check("order", "any", "any")
    with pytest.raises(OptionError, match=r"order = \[\]: must be one of quick, bubble, heap"):
        registry.check("order", [])
    with pytest.raises(KeyError):
        registry["raising"]


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        (Sort("quick"), "another sort has that name"),
        (Sort("auto"), "not reserved"),
        (Sort(""), "must be a text that is not empty"),
        (Sort(7), "must be a text that is not empty"),  # type: ignore[arg-type]
        ("quick", "must be a Sort, not of type str"),
    ],
)
def test_what_cannot_be_added_is_refused(registry: Registry[Sort], entry: Sort, reason: str) -> None:
    with pytest.raises(OptionError, match=reason):
        registry.add(entry)
    assert list(registry) == ["quick", "bubble", "heap"]


def test_only_what_was_added_can_be_removed(registry: Registry[Sort]) -> None:
    radix = Sort("radix")
    registry.add(radix)
    registry.remove(radix)
    assert "radix" not in registry
    for entry in (radix, Sort("quick")):
        with pytest.raises(OptionError, match="is not registered by a call"):
            registry.remove(entry)


def test_of_two_distributions_that_share_a_name_the_first_counts(
    registry: Registry[Sort], tmp_path: Path
) -> None:
    install(tmp_path / "site", "second-sorts", {"second_sorts": SOUND}, {GROUP: "heap = second_sorts:heap"})
    names = [entry.distribution for entry in registry.broken() if entry.name == "heap"]
    assert names in (["acme-sorts"], ["second-sorts"]) and "heap" in registry
