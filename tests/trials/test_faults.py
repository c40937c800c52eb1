"""Commands survive Ctrl-C, kill, full disks, closed output and damaged caches; nothing is left behind."""

from __future__ import annotations

import sys

import pytest
from trials.campaign import SOUND
from trials.faults import COMMANDS, FAULTS, main

from partitioner.cli.command_line import COMMANDS as ALL

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="signals and /dev/full of Linux")


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_faults_from_outside(fault: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--only", fault, "--cases", "6", "--seed", "40002"]) == SOUND, capsys.readouterr().out


def test_every_command_that_needs_no_model_is_tried() -> None:
    assert {line.split()[0] for line in COMMANDS} == set(ALL) - {"profile", "verify", "warm-up"}
