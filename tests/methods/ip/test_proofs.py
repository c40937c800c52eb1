"""Whatever backend proves an integer program, a small one without a time limit ends with a proof."""

from __future__ import annotations

import pytest

import partitioner as pt
from tests.methods.ip.backends import EACH_BACKEND

CHAIN = pt.Graph.from_arrays(
    {"gpu": [1.0, 1.0, 7.0, 0.0, 2.0], "npu": [3.5, 1.0, 3.5, 0.0, 0.0], "cpu": [2.0, 2.0, 14.0, 0.0, 4.0]},
    [(0, 4), (2, 3), (3, 4)],
    [1.2, 0.0, 0.075],
    size=[1.0, 1.0, 0.0, 1.0, 0.0],
    backward=[False, False, False, True, True],
)
TWO_KINDS = pt.Devices(
    (
        pt.DeviceKind("gpu", 0, transfer_factor=4.0),
        pt.DeviceKind("npu", 1, time_factor=0.5),
        pt.DeviceKind("cpu", 1, pays_communication=False),
    )
)


@pytest.mark.parametrize("backend", EACH_BACKEND)
def test_no_value_just_below_the_best_is_accepted(backend: str) -> None:
    """A solver's tolerance must be smaller than the distance from the cutoff to the best value."""
    plan = pt.solve(CHAIN, TWO_KINDS, "gpipe", method="ip", split="convex", workers=1, backend=backend)
    assert plan.status == "optimal", plan.native_status
