"""The program over pairs of cuts, device by device, for schedules with two stages on each device.

Where stages go round the devices, device i has stages i and p + i: for a given cut between stages p - 1 and
p, both rounds are walked at once, and what devices 0 to i hold is known by one cut in either round. In a V
device i has stages i and 2 p - 1 - i: both ends are walked at once, and the last device takes what is left.

Without it 18 of 24 plans with two stages on a device are worse or no longer proven (scripts/ablations.py).
"""

from __future__ import annotations

import numpy as np

from partitioner.methods.method import Settings
from partitioner.methods.virtual_stages.kernel import JointLimits, PairedStages, next_device
from partitioner.methods.virtual_stages.model import StagesFound, VirtualModel
from partitioner.problem.arrays import Floats, Ints


def end_of(model: VirtualModel, rank: int, place: int, backwards: bool) -> PairedStages:
    """Return the stages that a device may take, each of which its memory holds alone.

    Parameters
    ----------
    model
        The devices and stages.
    rank, place
        The number of the device, and which of its two stages is meant.
    backwards
        Whether the devices take their stages from the end.
    """
    costs = model.costs
    arrays = model.low, costs.busy, costs.once, costs.kept, costs.workspace
    if backwards:
        arrays = tuple(np.ascontiguousarray(np.swapaxes(each, -1, -2)) for each in arrays)  # type: ignore[assignment]
    low, busy, once, kept, workspace = arrays
    may = np.isfinite(low).all(axis=0)
    if model.scarce:
        may &= once + kept * model.samples(rank)[:, place].max() + workspace <= model.limit
    count = may.sum(axis=1)
    order = np.argsort(np.where(may, busy, np.inf), axis=1, kind="stable")
    items = np.concatenate([row[:n] for row, n in zip(order, count.tolist(), strict=True)])
    start = np.concatenate(([0], np.cumsum(count)))
    return PairedStages(low, busy, start, items, once, kept, workspace)


Pair = tuple[int, int]


class PairSearch:
    """A search for stages whose largest load is below a limit."""

    def __init__(self, model: VirtualModel, limit: float, settings: Settings) -> None:
        self.model, self.limit, self.settings = model, limit, settings
        self.steps = 0
        self.ends: dict[int, tuple[PairedStages, PairedStages]] = {}

    @property
    def over(self) -> bool:
        """Whether the search is to be cut short."""
        return self.settings.expired or self.steps > self.settings.step_limit

    def run(self) -> StagesFound:
        """Return stages of the least largest load below the limit."""
        return self._vee() if self.model.schedule.vee else self._rounds()

    def _rounds(self) -> StagesFound:
        model, costs, best = self.model, self.model.costs, StagesFound(None, self.limit, complete=True)
        last = len(costs.cuts) - 1
        processing = np.where(np.eye(last + 1, dtype=bool), 0.0, costs.busy)
        for middle in np.flatnonzero(np.isfinite(processing[0]) & np.isfinite(processing[:, last])).tolist():
            rest = processing[:, middle, None] + processing[None, :, last]
            value, parents = self._walk((0, middle), rest, model.devices)
            if self.over:
                return StagesFound(best.borders, 0.0, complete=False)
            if value[middle, last] < self.limit:
                self.limit = float(value[middle, last])
                one, other = _paths(parents, (middle, last))
                best = StagesFound(np.array([*one, *other[1:]]), self.limit, complete=True)
        return best

    def _vee(self) -> StagesFound:
        model, last = self.model, len(self.model.costs.cuts) - 1
        value, parents = self._walk((0, last), model.costs.busy, model.devices - 1)
        if self.over:
            return StagesFound(None, 0.0, complete=False)
        final = self._middles(value)
        best = divmod(int(np.argmin(final)), last + 1)
        if not final[best] < self.limit:
            return StagesFound(None, self.limit, complete=True)
        front, back = _paths(parents, best)
        borders = [*front, middle_of(model, *best), *back[::-1]]
        return StagesFound(np.array(borders), float(final[best]), complete=True)

    def _walk(self, start: Pair, rest: Floats, devices: int) -> tuple[Floats, list[Ints]]:
        """Return the values of pairs of cuts after a number of devices, and the pairs before each device."""
        model, parents = self.model, list[Ints]()
        value = np.full(rest.shape, np.inf)
        value[start] = 0.0
        room, nets = model.limit if model.scarce else np.inf, model.costs.nets(model.shared)
        for rank in range(devices):
            if self.over:
                break
            found, parent = np.full(rest.shape, np.inf), np.full(rest.shape, -1, dtype=np.int64)
            most = (model.devices - 1 - rank) * self.limit
            samples = model.samples(rank).astype(np.float64)
            front, back = self._ends(rank)
            joint = JointLimits(nets, samples, room)
            self.steps += next_device(value, self.limit, rest <= most, front, back, joint, found, parent)
            value = found
            parents.append(parent)
        return value, parents

    def _ends(self, rank: int) -> tuple[PairedStages, PairedStages]:
        """Return the stages that a device may take at either place."""
        if rank not in self.ends:
            vee = self.model.schedule.vee
            self.ends[rank] = end_of(self.model, rank, 0, False), end_of(self.model, rank, 1, vee)
        return self.ends[rank]

    def _middles(self, value: Floats) -> Floats:
        """Return the values if the last device of a V takes all between two cuts, shape (m, m)."""
        found: Floats = np.maximum(value, self.model.costs.alone.max(axis=0))
        for pair in np.argwhere(found < self.limit).tolist():
            if middle_of(self.model, *pair) < 0:
                found[tuple(pair)] = np.inf
        return found


def _paths(parents: list[Ints], at: Pair) -> tuple[list[int], list[int]]:
    """Return the cuts that lead to a pair at the front and at the back."""
    front, back = [at[0]], [at[1]]
    for parent in reversed(parents):
        at = divmod(int(parent[at]), len(parent))
        front, back = [at[0], *front], [at[1], *back]
    return front, back


def middle_of(model: VirtualModel, a: int, b: int) -> int:
    """Return the cut that best divides the two stages of the last device of a V; -1 if none is allowed."""
    costs, allowed = model.costs, model.costs.allowed
    between = np.flatnonzero(allowed[a] & allowed[:, b])
    order = between[np.argsort(np.abs(costs.busy[a, between] - costs.busy[between, b]), kind="stable")]
    if model.scarce:
        samples = model.samples(model.devices - 1)
        held = (samples[:, :1] * costs.kept[a, order] + samples[:, 1:] * costs.kept[order, b]).max(axis=0)
        used = costs.once[a, b] + held + np.maximum(costs.workspace[a, order], costs.workspace[order, b])
        order = order[used <= model.limit]
    return int(order[0]) if len(order) else -1
