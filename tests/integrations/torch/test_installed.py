"""What is missing is named in one line with the command that installs it, and importing loads no torch."""

from __future__ import annotations

import subprocess
import sys

import pytest

from partitioner.base.errors import BackendUnavailable
from partitioner.integrations.torch import graph_of
from partitioner.integrations.torch.installed import check_version

REMEDY = 'graphs of torch\'s models need torch: pip install "dnn-partitioner[torch]"'


def test_importing_loads_no_torch() -> None:
    program = "import sys; import partitioner.integrations.torch; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_without_torch_one_line_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("partitioner.integrations.torch.installed.find_spec", lambda name: None)
    with pytest.raises(BackendUnavailable) as failure:
        graph_of(None, (), device="H100", bandwidth=1e9)
    assert str(failure.value) == REMEDY


@pytest.mark.parametrize("version", ["2.8.1", "2.16.0", "3.13.0"])
def test_another_version_is_refused_for_training(version: str) -> None:
    with pytest.raises(
        BackendUnavailable, match=rf"torch {version}: training=True uses .* torch 2\.13, 2\.14 and 2\.15"
    ):
        check_version(version)
