"""No stage has transfers that are called sure and that it does not pay, whatever the other stages are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from partitioner import PartitionerError
from partitioner.methods.dp import reduced
from partitioner.methods.virtual_stages import bound_nets, path_bounds
from partitioner.methods.virtual_stages.bound import EFFORT
from partitioner.methods.virtual_stages.bound_arcs import ArcLists
from partitioner.methods.virtual_stages.bound_nets import with_sure_transfers
from partitioner.methods.virtual_stages.path_bounds import PathFamily
from partitioner.problem.arrays import Ints
from partitioner.workload.virtual_stages.schedules import VIRTUAL
from tests.methods.virtual_stages.test_bound import bounds_of, judged
from tests.random_virtual_stages import random_virtual_case

MOST_CHAINS = 200
SEVERAL = [name for name, schedule in VIRTUAL.items() if schedule.chunks_for(None) > 1]


def families(seed: int, name: str) -> list[PathFamily]:
    """The searches of a random case, for each number of devices."""
    case = random_virtual_case(np.random.default_rng(seed), name)
    try:
        bounds = bounds_of(case)
    except PartitionerError:
        return []
    counts = range(1, case.devices.kinds[0].count + 1)
    found = [
        bounds._family(count, np.inf) for count in counts if not VIRTUAL[name].rule(count, case.microbatches)
    ]
    return [family for family in found if family is not None]


def chains_of(lists: ArcLists) -> list[Ints]:
    """Some chains, by the places of their stages."""
    found = [(0, np.empty(0, dtype=np.int64))]
    for stage in range(lists.stages):
        steps = [
            (int(lists.items[place]), np.append(chain, place))
            for cut, chain in found
            for place in range(lists.start[stage, cut], lists.end[stage, cut])
        ]
        found = steps[:MOST_CHAINS]
    return [chain for cut, chain in found if cut == lists.cuts - 1]


def compared(family: PathFamily) -> tuple[int, int]:
    """Compare all searches of a family; return how many chains, and chains with sure transfers, there are."""
    chains = sure = 0
    for search in family.searches(0.0, np.inf):
        lists = with_sure_transfers(search.open_lists(), search.nets)
        for chain in chains_of(lists):
            borders = np.append(0, lists.items[chain])
            paid = search.times_of(borders)
            assert (paid + 1e-9 >= lists.surely[:, chain].T).all()
            for stages in range(1, len(chain) + 1):  # what is known of the rest of the chain does not matter
                begun = with_sure_transfers(lists.beginning(borders[: stages + 1]), search.nets)
                places = begun.places(borders[None])[0]
                assert (paid + 1e-9 >= begun.surely[:, places].T).all()
                assert (begun.surely[:, places].T >= lists.surely[:, chain].T - 1e-9).all()
            chains += 1
            sure += bool((lists.surely[:, chain].T > lists.times[:, chain].T + 1e-9).any())
    return chains, sure


@pytest.mark.parametrize("name", SEVERAL)
@pytest.mark.parametrize(("first", "count"), [(0, 12), pytest.param(12, 100, marks=pytest.mark.slow)])
def test_no_sure_transfer_is_spared(name: str, first: int, count: int) -> None:
    """Against the transfers of each chain, from any beginning of it that is given."""
    found = [compared(family) for seed in range(first, first + count) for family in families(seed, name)]
    chains, sure = np.sum(found, axis=0)
    assert chains > 10 * count and sure > count / 4


def both(
    seed: int, name: str, draw: int, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[PathFamily, PathFamily]]:
    """The searches of a random case for each number of devices, with all supernodes and without some."""
    case, rng = random_virtual_case(np.random.default_rng(seed), name), np.random.default_rng([seed, draw])
    most_cuts, effort = path_bounds._most_cuts, replace(EFFORT, light=(), left_out=(0.5,))
    monkeypatch.setattr(path_bounds, "EFFORT", effort)
    monkeypatch.setattr(
        reduced, "all_but_lightest", lambda weight, _: np.isinf(weight) | (rng.random(len(weight)) < 0.4)
    )
    try:
        whole = bounds_of(case)
        monkeypatch.setattr(path_bounds, "_most_cuts", lambda *_: 1)
        rest = bounds_of(case)
    except PartitionerError:
        return
    finally:
        monkeypatch.setattr(path_bounds, "_most_cuts", most_cuts)
    counts = range(1, case.devices.kinds[0].count + 1)
    for count in (each for each in counts if not VIRTUAL[name].rule(each, case.microbatches)):
        family, other = whole._family(count, np.inf), rest._family(count, np.inf)
        if family is not None and other is not None:
            yield family, other


def without_some(family: PathFamily, rest: PathFamily) -> tuple[int, int]:
    """Compare all chains; return how many there are, and those with less."""
    fewer = rest.model.costs[0].fewer
    assert fewer is not None
    number = {row.tobytes(): cut for cut, row in enumerate(rest.cuts.member)}
    of = np.array([number[row[fewer.kept].tobytes()] for row in family.cuts.member])
    others, chains, less = {each.apart: each for each in rest.searches(0.0, np.inf)}, 0, 0
    for search in family.searches(0.0, np.inf):
        lists, other = search.open_lists(), others[search.apart]
        sure = with_sure_transfers(other.open_lists(), other.nets)
        for chain in chains_of(lists):
            borders = np.append(0, lists.items[chain])
            paid, known = search.times_of(borders), other.times_of(of[borders])
            places = sure.places(of[borders][None])[0]
            assert (places >= 0).all()
            assert (known <= paid + 1e-9).all() and (sure.surely_of(places) <= paid + 1e-9).all()
            chains, less = chains + 1, less + bool((known < paid - 1e-9).any())
    return chains, less


@pytest.mark.parametrize("name", SEVERAL)
@pytest.mark.parametrize(("first", "count"), [(60, 30), pytest.param(90, 150, marks=pytest.mark.slow)])
def test_no_chain_takes_longer_without_some_supernodes(
    name: str, first: int, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pass by pass, with the transfers that stages surely pay, though stages may be empty now."""
    seeds = product(range(first, first + count), range(3))
    pairs = [pair for seed, draw in seeds for pair in both(seed, name, draw, monkeypatch)]
    chains, less = np.sum([without_some(*pair) for pair in pairs], axis=0)
    assert chains > 10 * count and less > 5 * count


def listed(name: str) -> list[ArcLists]:
    """The stages of the searches of a few random cases."""
    every = [family for seed in range(8) for family in families(seed, name)]
    return [search.open_lists() for family in every for search in family.searches(0.0, np.inf)]


@pytest.mark.parametrize("name", SEVERAL)
def test_times_of_four_bytes_are_a_little_less(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Than the true ones, by some millionths, with the transfers that stages surely pay."""
    exact = listed(name)
    monkeypatch.setattr(path_bounds, "EFFORT", replace(EFFORT, exact=0))
    rough = listed(name)
    assert {lists.surely.dtype for lists in rough} == {np.dtype(np.float32)}
    for one, other in zip(exact, rough, strict=True):
        assert (one.items == other.items).all()
        assert (other.surely <= one.surely).all() and (other.surely >= one.surely * (1 - 3e-6)).all()
    assert sum(compared(family)[0] for seed in range(4) for family in families(seed, name)) > 0


def test_places_of_stages_that_are_not_open() -> None:
    """They are -1."""
    start, end = np.array([[0, 2, 2], [2, 2, 3]]), np.array([[2, 2, 2], [2, 3, 3]])
    lists = ArcLists(start, end, np.array([1, 2, 2]), np.ones((3, 3)), np.ones((3, 3)))
    assert lists.places(np.array([[0, 1, 2], [0, 2, 2]])).tolist() == [[0, 2], [1, -1]]
    begun = [lists.beginning(np.array([0, cut])) for cut in (1, 2)]
    assert [int((each.end - each.start).sum()) for each in begun] == [2, 2]
    assert lists.up_to(np.zeros((1, 2, 3)), 0.0).items.tolist() == [1, 2]


def test_shared_transfers_do_not_count_on_many_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    """There, a set of devices has no bit for each of them; the bounds are right without these transfers."""
    name, seeds = SEVERAL[0], range(8)
    searches = [search for seed in seeds for each in families(seed, name) for search in each.searches(0, 1e9)]
    assert any(len(search.nets.made) for search in searches)
    monkeypatch.setattr(bound_nets, "MOST_DEVICES", 0)
    searches = [search for seed in seeds for each in families(seed, name) for search in each.searches(0, 1e9)]
    assert searches and not any(len(search.nets.made) for search in searches)
    assert sum(judged(seed, name) for seed in seeds) > 0
