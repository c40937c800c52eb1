"""The backends that are present, as parameters: all but two of them are marked slow."""

from __future__ import annotations

from tests.methods.ip.cases import PRESENT
from tests.methods.slow_parameters import slow

QUICK = ("scip", "cbc")
EACH_BACKEND = [name if name in QUICK else slow(name) for name in PRESENT]
