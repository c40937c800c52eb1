"""ETF, m-TOPO, m-ETF and m-SCT on graphs that are small enough to be worked by hand."""

from __future__ import annotations

import pytest

from partitioner import DeviceKind, Devices
from partitioner.methods.method import Settings
from partitioner.methods.placers.m_etf import place_etf, place_m_etf
from partitioner.methods.placers.m_sct import favourite_children, place_m_sct
from partitioner.methods.placers.m_topo import memory_cap, place_m_topo
from partitioner.methods.placing import Placing
from tests.methods.placers.baechi_by_hand import places, run_order, tasks_by_hand

ONES = dict.fromkeys("abcde", 1.0)
CHAIN = {"ab": 0.0, "bc": 0.0, "cd": 0.0, "de": 0.0}
SIZES = {"a": 3.0, "b": 2.0, "c": 2.0, "d": 4.0, "e": 1.0}
NONUNIFORM = Settings(placing=Placing(uniform=False))


def two(memory: float | None = None) -> Devices:
    return Devices((DeviceKind("accelerator", 2, memory=memory),))


def test_m_topo_fills_up_to_the_cap() -> None:
    """Sum 12, two devices, largest 4: cap 6 + 4 = 10. a, b, c take 7; d would make 11: d and e go on."""
    tasks = tasks_by_hand(ONES, CHAIN, two(), SIZES)
    assert memory_cap(tasks, uniform=True).tolist() == [10.0, 10.0]
    assert places(tasks, place_m_topo(tasks, Settings())) == "00011"


@pytest.mark.parametrize(("memory", "wanted"), [(None, "00000"), (8.0, "00011"), (7.0, "00011")])
def test_m_topo_up_to_the_memory_alone(memory: float | None, wanted: str) -> None:
    """Without limit all is on one device; with 8, or with 7, d does not fit behind a, b, c."""
    tasks = tasks_by_hand(ONES, CHAIN, two(memory), SIZES)
    assert places(tasks, place_m_topo(tasks, NONUNIFORM)) == wanted


def test_the_cap_counts_whole_groups() -> None:
    """Sum 12, two devices, c and d together 6: cap 6 + 6 = 12, and all is on device 0."""
    tasks = tasks_by_hand(ONES, CHAIN, two(), SIZES, together="cd")
    assert memory_cap(tasks, uniform=True).tolist() == [12.0, 12.0]
    assert places(tasks, place_m_topo(tasks, Settings())) == "00000"


def test_m_topo_never_goes_back() -> None:
    """Limit 6, below the cap of 10: a, b take 5; c, d take 6; e would fit on the first, which is closed."""
    tasks = tasks_by_hand(ONES, CHAIN, two(6.0), SIZES)
    assert memory_cap(tasks, uniform=True).tolist() == pytest.approx([6.0, 6.0])
    assert place_m_topo(tasks, Settings()) is None


def test_m_topo_tests_and_books_whole_groups() -> None:
    """Limit 6, a and e together: a brings 4, b makes 6; c would make 8: c and d, 6, go on."""
    tasks = tasks_by_hand(ONES, CHAIN, two(6.0), SIZES, together="ae")
    assert places(tasks, place_m_topo(tasks, NONUNIFORM)) == "00110"


DIAMOND = {"a": 2.0, "b": 3.0, "c": 1.0, "d": 2.0}


def test_m_etf_on_a_diamond() -> None:
    """At 0 a runs on device 0. At 2 device 0 takes b, first of b and c; c's input is on device 1 at 3.

    At 5, when b ends, d could start on device 0 at 4 + 4 = 8, on device 1 at 5 + 4 = 9: 8 + 2 = 10.
    """
    tasks = tasks_by_hand(DIAMOND, {"ab": 1.0, "ac": 1.0, "bd": 4.0, "cd": 4.0}, two())
    found = place_m_etf(tasks, Settings())
    assert found is not None and found.estimate == 10.0
    assert places(tasks, found) == "0010"
    assert run_order(tasks, found) == [0, 1, 2, 3]


@pytest.mark.parametrize(("contention", "end"), [(False, 5.0), (True, 7.0)])
def test_m_etf_waits_for_channels(contention: bool, end: float) -> None:
    """A ends on device 0, which it fills, at 1. b's input, 2 long, is on device 1 at 3: b runs to 4.

    c's input, 3 long, is there at 4; with contention it is sent from 3 on: c starts at 6.
    """
    devices = Devices((DeviceKind("accelerator", 1, memory=1.0), DeviceKind("cpu", 1)))
    size = {"a": 1.0, "b": 1.0, "c": 1.0}
    edges = {"ab": 2.0, "ac": 3.0}
    tasks = tasks_by_hand(dict.fromkeys("abc", 1.0), edges, devices, size, contention=contention)
    found = place_m_etf(tasks, Settings())
    assert places(tasks, found) == "011"
    assert found is not None and found.estimate == end


def test_m_etf_keeps_groups_and_memory() -> None:
    """Limit 6 each. a brings 3 + 2 (a and c together) to device 0; b, 2, does not fit there at 0.

    b runs on device 1 from 0 on; c waits for device 0; d, 4, fits on device 1 only.
    """
    size = {"a": 3.0, "b": 2.0, "c": 2.0, "d": 4.0}
    tasks = tasks_by_hand(dict.fromkeys("abcd", 1.0), {}, two(6.0), size, together="ac")
    found = place_m_etf(tasks, Settings())
    assert places(tasks, found) == "0101"
    assert found is not None and found.estimate == 2.0


def test_without_reservation_the_rest_of_a_group_may_find_its_device_full() -> None:
    """Limit 4 each, 2 for every task; a and d are together, b comes behind a, d behind c.

    c runs on device 1 from 0 on. With reservation a takes all of device 0, and b goes to device 1. Without,
    2 are left there when b is ready, and b follows a; d finds nothing left where its group is.
    """
    size = dict.fromkeys("abcd", 2.0)
    time = {"a": 1.0, "b": 1.0, "c": 2.0, "d": 1.0}
    tasks = tasks_by_hand(time, {"ab": 1.0, "cd": 0.0}, two(4.0), size, together="ad")
    assert places(tasks, place_m_etf(tasks, Settings())) == "0110"
    assert place_m_etf(tasks, Settings(placing=Placing(reserve_memory=False))) is None


def test_etf_breaks_ties_by_the_longest_path() -> None:
    """One device: b (1 + 5) goes before a (1); at 1 both a and c could start, and c is longer."""
    tasks = tasks_by_hand({"a": 1.0, "b": 1.0, "c": 5.0}, {"bc": 0.0}, Devices.accelerated(1))
    found = place_etf(tasks, Settings())
    assert found is not None and run_order(tasks, found) == [1, 2, 0]
    plain = place_m_etf(tasks, Settings())
    assert plain is not None and run_order(tasks, plain) == [0, 1, 2]


def test_etf_takes_the_earliest_start() -> None:
    """A (longest path 2 + 3 + 1) on device 0, b on device 1, both to 2; c on 0 at 3, on 1 at 5."""
    tasks = tasks_by_hand({"a": 2.0, "b": 2.0, "c": 1.0}, {"ac": 3.0, "bc": 1.0}, two())
    found = place_etf(tasks, Settings())
    assert places(tasks, found) == "010"
    assert found is not None and found.estimate == 4.0


WAITING = {"u": 2.5, "x": 1.0, "w": 1.0, "z": 5.0, "y": 3.0, "f": 1.0, "g": 8.0}
INPUTS = {"uf": 4.0, "wf": 1.0, "fg": 1.0}


def test_the_linear_program_of_m_sct() -> None:
    """The path u, f, g of 2.5 + 1 + 8 decides: 11.5 if f is u's favourite and g is f's.

    w may then not have f as its favourite, and need not: 1 + 1 comes before 2.5.
    """
    tasks = tasks_by_hand(WAITING, INPUTS, two())
    favourites = favourite_children(tasks, Settings())
    assert favourites.statistics["lp_value"] == pytest.approx(11.5)
    names = list(WAITING)
    node = [names[v] for v in tasks.node.tolist()]
    pairs = {node[u] + node[v] for u, v in enumerate(favourites.child.tolist()) if v >= 0}
    assert pairs == {"uf", "fg"}


def test_m_sct_waits_for_the_favourite_child() -> None:
    """To 2: u runs on device 0; x, then w on device 1, which then takes z, from 2 to 7.

    At 2.5 u ends. Its favourite f could start here at 2 + 1 = 3, on device 1 at 7: device 0 waits, as y
    could not start on device 1 either. f runs from 3 to 4, then its favourite g to 12, y on device 1 from 7
    to 10. m-ETF runs y first, from 2.5 to 5.5, then f to 6.5 and g to 14.5.
    """
    tasks = tasks_by_hand(WAITING, INPUTS, two())
    found, plain = place_m_sct(tasks, Settings()), place_m_etf(tasks, Settings())
    assert found is not None and plain is not None
    assert (found.estimate, plain.estimate) == (12.0, 14.5)
    assert (places(tasks, found), places(tasks, plain)) == ("0111100", "0111000")


def test_m_sct_runs_what_is_urgent_first() -> None:
    """As above, but z takes 0.5, from 2 to 2.5: then both devices are idle, and y could start on both.

    Device 0, awake, offers y, and so does device 1; the lower one runs it, to 5.5. f could start on device 1
    at 2.5 + 4 = 6.5 and runs on device 0 from 5.5 to 6.5, g to 14.5.
    """
    tasks = tasks_by_hand({**WAITING, "z": 0.5}, INPUTS, two())
    found = place_m_sct(tasks, Settings())
    assert places(tasks, found) == "0111000"
    assert found is not None and found.estimate == 14.5
