"""Fields of kinds of devices that have a wrong type are named, with the rule."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from partitioner import DeviceKind, Devices, WorkloadError


@pytest.mark.parametrize("value", [np.array([]), "yes", None, [True]])
def test_whether_a_kind_pays_for_transfers_is_true_or_false(value: Any) -> None:
    with pytest.raises(WorkloadError, match=r"pays_communication = .*: must be True or False"):
        Devices((DeviceKind("gpu", 2, pays_communication=value),))


def test_numpys_truth_values_are_taken() -> None:
    pays: Any = np.bool_(False)
    assert not Devices((DeviceKind("gpu", 2, pays_communication=pays),)).kinds[0].pays_communication
