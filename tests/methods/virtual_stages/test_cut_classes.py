"""A stage between classes of cuts takes no longer than any between two of their cuts, pass by pass."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from partitioner.methods.virtual_stages import bound, path_bounds
from partitioner.methods.virtual_stages.bound_nets import with_sure_transfers
from partitioner.methods.virtual_stages.cut_classes import CutClasses, heavy_supernodes
from partitioner.methods.virtual_stages.path_bounds import PathFamily
from partitioner.workload.virtual_stages.schedules import VIRTUAL
from tests.methods.virtual_stages.test_bound import judged
from tests.methods.virtual_stages.test_bound_nets import SEVERAL, chains_of, families

LIGHT = (0.2, 0.5)  # parts of the work of random graphs, whose supernodes are few


def coarse(seed: int, name: str) -> Iterator[tuple[PathFamily, PathFamily]]:
    """The searches of a random case between single cuts, and those between classes of random supernodes."""
    rng = np.random.default_rng(seed)
    for family in families(seed, name):
        fine = PathFamily(family.listed, family.settings)
        heavy = family.listed.spine | (rng.random(family.model.problem.n) < 0.5)
        yield fine, PathFamily(family.listed, family.settings, CutClasses(fine.cuts, heavy))


def compared(fine: PathFamily, rough: PathFamily) -> tuple[int, int, int]:
    """Compare all chains; return how many there are, those with less, and those with transfers of classes."""
    classes = rough.classes
    assert classes is not None
    chains = less = joint = 0
    for search, other in zip(fine.searches(0.0, np.inf), rough.searches(0.0, np.inf), strict=True):
        lists, between = search.open_lists(), other.open_lists()
        sure = with_sure_transfers(between, other.nets)
        for chain in chains_of(lists):
            borders = np.append(0, lists.items[chain])
            paid, known = search.times_of(borders), other.times_of(classes.of[borders])
            places = between.places(classes.of[borders][None])[0]
            assert (known <= paid + 1e-9).all() and (sure.surely_of(places) <= known + 1e-9).all()
            chains += 1
            less += bool((known < paid - 1e-9).any())
            joint += bool((known > between.times[:, places].T + 1e-9).any())
    return chains, less, joint


@pytest.mark.parametrize("name", SEVERAL)
@pytest.mark.parametrize(("first", "count"), [(0, 10), pytest.param(10, 80, marks=pytest.mark.slow)])
def test_no_chain_between_classes_takes_longer(name: str, first: int, count: int) -> None:
    """Against the times and transfers of each chain of the cuts, pass by pass."""
    found = [compared(*pair) for seed in range(first, first + count) for pair in coarse(seed, name)]
    chains, less, joint = np.sum(found, axis=0)
    assert chains > 10 * count and less > count and joint > count / 4


@pytest.mark.parametrize("name", SEVERAL)
def test_the_cuts_of_classes_are_nested_as_these_are(name: str) -> None:
    """They hold the heavy supernodes of their classes, and no class is there twice."""
    for seed in range(6):
        for _, rough in coarse(seed, name):
            classes = rough.classes
            assert classes is not None
            held = classes.cuts.member[:, classes.heavy]
            assert (held[classes.of] == classes.whole.member[:, classes.heavy]).all()
            assert len(np.unique(held, axis=0)) == len(classes) == len(classes.cuts)
            assert not held[0].any() and held[-1].all() and classes.cuts.member[-1].all()
            inside = (held[:, None] <= held[None]).all(axis=2) & ~np.eye(len(held), dtype=bool)
            assert (inside == classes.cuts.nested).all()


def test_the_lightest_supernodes_take_a_part_of_the_work_at_most() -> None:
    """Those that are kept are never among them."""
    for seed in range(12):
        for family in families(seed, SEVERAL[0]):
            problem, rng = family.model.problem, np.random.default_rng(seed)
            kept, work = rng.random(problem.n) < 0.3, problem.work()[0]
            for share in (0.0, 0.1, 0.4, 1.0):
                heavy = heavy_supernodes(problem, kept, share)
                assert heavy[kept].all() and work[~heavy].sum() <= share * work.sum() + 1e-9
            assert (heavy == kept).all()


@pytest.mark.parametrize("name", VIRTUAL)
@pytest.mark.parametrize(("first", "count"), [(100, 6), pytest.param(106, 60, marks=pytest.mark.slow)])
def test_no_bound_of_classes_is_above_the_best_pipeline(
    name: str, first: int, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Against all chains, simulated, where most supernodes are light ones."""
    monkeypatch.setattr(path_bounds, "EFFORT", replace(bound.EFFORT, light=LIGHT, fewer=1.0))
    parts, number = PathFamily.parts, list[int]()

    def noted(self: PathFamily, search: bound.PathBound, value: float) -> list[path_bounds.Search]:
        found = parts(self, search, value)
        number.extend(len(self.cuts) for family, _ in found if family is not self)
        return found

    monkeypatch.setattr(PathFamily, "parts", noted)
    assert sum(judged(seed, name) for seed in range(first, first + count)) >= count / 4
    assert number
