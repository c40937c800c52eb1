"""Curves fitted to times that a known curve gives are that curve; the file is what the script makes."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
from distil_curves import coded, distilled, fitted, held_out, judged

from partitioner.estimation import Product, named_device
from partitioner.estimation.curves import STEPS, Curve, decoded
from partitioner.estimation.device_time import base_time
from partitioner.estimation.measured_tables import Measured

TABLES = Path(__file__).resolve().parents[3] / "shared" / "reference" / "operations"
POINTS = [[16.0, 256.0, 4096.0], [64.0, 8192.0], [64.0, 8192.0]]


def test_a_known_curve_is_found_from_half_of_its_noisy_times() -> None:
    random = np.random.default_rng(5)
    known = Curve(tuple(map(tuple, POINTS)), random.uniform(0, 2, (3, 2, 2)))
    m, n, k = (2.0 ** random.uniform(4, 13, 4000) for _ in range(3))
    product, device = Product(m, n, k), named_device("A100-80")
    noise = np.exp(random.normal(0, 0.02, 4000))
    time = base_time(device, product, "bfloat16") * known.factor((m, n, k)) * noise
    held = held_out(0, 4000)
    one = Measured(product, "bfloat16", time)
    found = fitted(one, POINTS, device, ~held)
    assert found.values == pytest.approx(known.values, abs=0.05)
    assert judged(one, found, device, held).median < 0.03
    assert decoded(coded(found)["values"]) == pytest.approx(found.values.ravel())


def test_a_third_is_held_out() -> None:
    assert held_out(3, 30_000).mean() == pytest.approx(1 / 3, abs=0.01)
    assert (held_out(3, 100) == held_out(3, 100)).all()


@pytest.mark.slow
@pytest.mark.skipif(not TABLES.is_dir(), reason="the measured tables are not here")
def test_the_file_is_distilled_from_the_tables() -> None:
    """The errors on what was held out: half of the entries within 5 %, 95 % of them within 20 %.

    Sums in another order, on another processor, change some values by a step or two, and a few that
    hardly any entry determines by more.
    """
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    record, rows = distilled(TABLES)
    text = resources.files("partitioner.estimation").joinpath("curves.json").read_text()
    known, found = json.loads(text)["devices"], json.loads(json.dumps(record))["devices"]
    steps = []
    for device, kind in [(device, kind) for device, kinds in found.items() for kind in kinds]:
        for dtype, curve in found[device][kind].items():
            old = known[device][kind][dtype]
            assert curve["axes"] == old["axes"], (device, kind, dtype)
            steps.append(STEPS * np.abs(decoded(curve["values"]) - decoded(old["values"])))
    apart = np.concatenate(steps)
    assert np.quantile(apart, 0.999) < 2.5 and apart.max() < 8.5
    errors = np.concatenate([row.errors for row in rows])
    assert np.median(errors) < 0.05 and np.quantile(errors, 0.95) < 0.2
