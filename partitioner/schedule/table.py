"""A pass table: a schedule as data, with the passes that each device runs in order."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from partitioner.base.argument_types import require_items, require_mapping
from partitioner.base.errors import Flaw, WorkloadError, shown
from partitioner.workload.directions import BACKWARD, DIRECTIONS, FORWARD, INPUT, WEIGHT
from partitioner.workload.graph import Ints

__all__ = ["BACKWARD", "CELL", "CELL_RULE", "DIRECTIONS", "FORWARD", "INPUT", "WEIGHT", "Table"]
CELL = re.compile(r"(0|[1-9][0-9]{0,8})([FBIW])(0|[1-9][0-9]{0,8})", re.ASCII)
CELL_RULE = "must read as stage, F, B, I or W, and microbatch, such as 2F0; empty for a pause"


@dataclass(frozen=True, eq=False)
class Table:
    """The order in which every device runs its passes; pauses follow from the dependencies.

    Parameters
    ----------
    devices
        The names of the devices; each has a row.
    start
        Shape (devices + 1,): where each device's row begins among the passes.
    stage, microbatch, direction
        Shape (passes,): the (virtual) stage and the microbatch of each pass, and its direction as a position
        in `DIRECTIONS`: forward, backward, or one of two halves of the backward pass, the gradients of the
        inputs and those of the weights.
    at_once
        The largest number of microbatches in the pipeline at the same time; None for no limit.

    Examples
    --------
    >>> Table.from_rows({"gpu0": ["0F0", "0F1"], "gpu1": ["", "1F0", "1F1"]}).microbatch
    array([0, 1, 0, 1])
    """

    devices: tuple[str, ...]
    start: Ints
    stage: Ints
    microbatch: Ints
    direction: Ints
    at_once: int | None = None

    @classmethod
    def from_rows(cls, rows: Mapping[str, Sequence[str | None]]) -> Table:
        """Return the table of a row of cells for each device; ``2F0`` is stage, pass, microbatch (torch).

        Raises
        ------
        WorkloadError
            Naming every cell that is not of this form.
        """
        cells, lengths, flaws = [], [], []
        require_mapping("rows", rows, "must be a mapping from device name to a row of cells")
        rows = {device: require_items(f"device {shown(device)}", row) for device, row in rows.items()}
        for device, row in rows.items():
            filled = [(i, cell) for i, cell in enumerate(row) if cell is not None and cell != ""]
            lengths.append(len(filled))
            for i, cell in filled:
                found = CELL.fullmatch(cell) if isinstance(cell, str) else None
                if found is None:
                    flaws.append(Flaw(f"device {device}", f"cell {i}", shown(cell), CELL_RULE))
                else:
                    cells.append((int(found[1]), int(found[3]), DIRECTIONS.index(found[2])))
        if flaws:
            raise WorkloadError(flaws)
        stage, microbatch, direction = np.array(cells, dtype=np.int64).reshape(-1, 3).T
        start = np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))
        return cls(tuple(rows), start, stage, microbatch, direction)

    def rows(self) -> dict[str, list[str]]:
        """Return the cells of every device's row, without pauses."""
        parts = zip(self.stage.tolist(), self.direction.tolist(), self.microbatch.tolist(), strict=True)
        cells = [f"{stage}{DIRECTIONS[direction]}{microbatch}" for stage, direction, microbatch in parts]
        return {name: cells[self.start[i] : self.start[i + 1]] for i, name in enumerate(self.devices)}

    @property
    def row(self) -> Ints:
        """Shape (passes,): position in `devices` of the device that runs each pass."""
        return np.repeat(np.arange(len(self.devices)), np.diff(self.start))

    @property
    def microbatches(self) -> int:
        """How many microbatches there are."""
        return int(self.microbatch.max(initial=-1)) + 1
