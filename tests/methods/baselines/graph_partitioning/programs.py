"""Programs that stand in for Scotch."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

DEALING = """
n = int(open(sys.argv[2]).read().split()[1])
parts = int(sys.argv[1])
open(sys.argv[3], "w").write(" ".join(map(str, [n, *(x for v in range(n) for x in (v, v % parts))])))
"""
SLEEPING = "import time; time.sleep(60)"
FAILING = "sys.exit('no memory left')"
SILENT = "open(sys.argv[3], 'w').write('1 0 0')"


def stand_in(body: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a program named ``gpart`` on the PATH, alone, that tells its version and else does what it says."""
    program = folder / "gpart"
    asked = "if sys.argv[1] in ('-V', '-h'):\n    sys.exit(print('gmap/gpart, version 0.1'))\n"
    program.write_text(f"#!{sys.executable}\nimport sys\n{asked}{body}\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
