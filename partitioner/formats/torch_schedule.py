"""Reading of schedules from the CSV files of torch.distributed.pipelining."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass

from partitioner.base.errors import Flaw, OptionError, WorkloadError, shown
from partitioner.base.files import path_name, read_text
from partitioner.schedule.table import CELL, CELL_RULE, Table

NUMBER = r"(0|[1-9][0-9]{0,8})"
TRANSFER = re.compile(rf"{NUMBER}(SEND|RECV)_([FB]){NUMBER}", re.ASCII)
LEFT_OUT = re.compile(
    rf"{NUMBER}(UNSHARD|RESHARD|(WAIT_)?REDUCE_GRAD|WAIT_SEND_[FB]{NUMBER})", re.ASCII
)  # what follows from the table
OVERLAP = re.compile(r"\(([^()]*)\)OVERLAP_F_B")
OVERLAP_RULE = "must hold a forward and a backward pass, such as (0F1;3B0)OVERLAP_F_B"


@dataclass(frozen=True)
class Cell:
    """A cell of the file: where it is, its passes in order, and its transfer, each empty if there is none."""

    where: str
    passes: tuple[str, ...] = ()
    transfer: str = ""


def load_torch_schedule(path: str | os.PathLike[str], devices: Sequence[str] | None = None) -> Table:
    """Return the pass table in a schedule CSV of torch, format ``compute_only`` or ``compute_comms``.

    The file has a row for each rank and a cell for each step, which is empty for a pause. ``2F0`` is the
    forward pass of stage 2 for microbatch 0, ``B`` the backward pass, ``I`` and ``W`` its halves. The passes
    of ``(0F1;3B0)OVERLAP_F_B`` are read as two passes in this order, since in a pass table a device runs one
    pass at a time. Transfers (``SEND_F``, ``RECV_F``, ``SEND_B``, ``RECV_B``) and the handling of shards
    (``UNSHARD``, ``RESHARD``, ``REDUCE_GRAD``), and waiting for them (``WAIT_SEND_F``, ``WAIT_SEND_B``,
    ``WAIT_REDUCE_GRAD``), are left out, since they follow from the table; but a
    ``SEND`` must come after its pass, and a ``RECV`` before it.

    Parameters
    ----------
    path
        The file.
    devices
        The device of each rank; by default ``rank0``, ``rank1`` and so on.

    Raises
    ------
    WorkloadError
        Naming the file and every row, cell and rule that was broken.
    OptionError
        If `devices` does not have a different name for each row.
    """
    source, flaws = path_name(path), list[Flaw]()
    rows = [_row(number, row, flaws) for number, row in enumerate(_rows(read_text(path), source))]
    flaws += _repeated(rows)
    if flaws:
        raise WorkloadError(flaws, source)
    names = [f"rank{i}" for i in range(len(rows))] if devices is None else list(devices)
    if len(names) != len(rows) or len(set(names)) < len(names):
        raise OptionError(f"devices = {shown(names)}: must be {len(rows)} different names, one for each row")
    return Table.from_rows(
        dict(zip(names, ([p for c in row for p in c.passes] for row in rows), strict=True))
    )


def _rows(text: str, source: str) -> list[list[str]]:
    try:
        rows = list(csv.reader(text.splitlines(), strict=True))
    except csv.Error as error:
        raise WorkloadError([Flaw("file", "", "", f"is not CSV: {error}")], source) from error
    if not rows:
        raise WorkloadError([Flaw("file", "", "", "is empty")], source)
    return rows


def _row(number: int, row: Sequence[str], flaws: list[Flaw]) -> list[Cell]:
    cells = [_cell(f"row {number}, cell {i}", text.strip(), flaws) for i, text in enumerate(row)]
    if not any(cell.passes for cell in cells) and not flaws:
        flaws.append(Flaw(f"row {number}", "", "", "has no pass: each row must have the passes of a rank"))
    flaws += _out_of_place(cells)
    return cells


def _cell(where: str, text: str, flaws: list[Flaw]) -> Cell:
    """Return the passes or the transfer of a cell; add a flaw if its text is neither."""
    if text == "" or LEFT_OUT.fullmatch(text):
        return Cell(where)
    if TRANSFER.fullmatch(text):
        return Cell(where, transfer=text)
    overlap = OVERLAP.fullmatch(text)
    passes = tuple(part.strip() for part in overlap[1].split(";")) if overlap else (text,)
    sound = [CELL.fullmatch(part) for part in passes]
    kinds = "".join(found[2] for found in sound if found)
    if overlap and (not all(sound) or sorted(kinds) not in (["B", "F"], ["F", "I"])):
        flaws.append(Flaw(where, "", shown(text), OVERLAP_RULE))
    elif not all(sound):
        flaws.append(Flaw(where, "", shown(text), CELL_RULE))
    else:
        return Cell(where, passes)
    return Cell(where)


def _out_of_place(cells: Sequence[Cell]) -> list[Flaw]:
    """Return a flaw for each ``SEND`` before the pass that it belongs to, and each ``RECV`` after it."""
    done: set[str] = set()
    found = []
    for cell in cells:
        done |= {_halved(one) for one in cell.passes}
        transfer = TRANSFER.fullmatch(cell.transfer)
        if transfer:
            stage, way, direction, microbatch = transfer.groups()
            sends = way == "SEND"
            if (f"{stage}{direction}{microbatch}" in done) != sends:
                rule = "must come after its pass" if sends else "must come before its pass"
                found.append(Flaw(cell.where, "", cell.transfer, rule))
    return found


def _halved(one: str) -> str:
    """Return the pass with its first half ``I`` as ``B``: other stages wait for the first half only."""
    return one.replace("I", "B")


def _repeated(rows: Sequence[Sequence[Cell]]) -> list[Flaw]:
    """Return a flaw for each pass that is in the file twice, and each stage that is on two ranks."""
    seen: set[str] = set()
    home: dict[str, int] = {}
    found = []
    for rank, row in enumerate(rows):
        for cell in row:
            for one in cell.passes:
                stage = re.split("[FBIW]", one)[0]
                if one in seen:
                    found.append(Flaw(cell.where, "", one, "is given twice"))
                elif home.setdefault(stage, rank) != rank:
                    rule = f"stage {stage} is in row {home[stage]}: torch puts a stage on one rank"
                    found.append(Flaw(cell.where, "", one, rule))
                seen.add(one)
    return found
