"""The program over pairs of cuts, device by device, for schedules with two stages on each device.

Where stages go round the devices, device i has stages i and p + i: for a given cut between stages p - 1 and
p, both rounds are walked at once, and what devices 0 to i hold is known by one cut in either round. In a V
device i has stages i and 2 p - 1 - i: both ends are walked at once, and the last device takes what is left.

With devices of unlike kinds a table of such pairs is kept for every number of devices of each kind so far.

Without it 18 of 24 plans with two stages on a device are worse or no longer proven (scripts/ablations.py).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from partitioner.methods.method import Settings
from partitioner.methods.virtual_stages._ways_core import cheapest_middle
from partitioner.methods.virtual_stages.cut_costs import CutCosts
from partitioner.methods.virtual_stages.kernel import JointLimits, PairedStages, next_device
from partitioner.methods.virtual_stages.model import DealtStages, StagesFound, Used, VirtualModel
from partitioner.problem.arrays import Bools, Floats, Ints


def end_of(model: VirtualModel, costs: CutCosts, low: Floats, samples: Ints, backwards: bool) -> PairedStages:
    """Return the stages that a device may take, each of which its memory holds alone.

    Parameters
    ----------
    model
        The devices and stages.
    costs, low
        The costs of the device's kind, and their terms in :attr:`VirtualModel.low`.
    samples
        The samples in flight on the stage, in all combinations.
    backwards
        Whether the devices take their stages from the end.
    """
    may = np.isfinite(low).all(axis=0)
    if model.scarce:
        may &= costs.once + costs.kept * samples.max() + costs.workspace <= costs.memory
    arrays = low, costs.busy, may, costs.modes.first, costs.modes.end
    if backwards:
        arrays = tuple(np.ascontiguousarray(np.swapaxes(each, -1, -2)) for each in arrays)  # type: ignore[assignment]
    low, busy, may, first, end = arrays
    count = may.sum(axis=1)
    order = np.argsort(np.where(may, busy, np.inf), axis=1, kind="stable")
    items = np.concatenate([row[:n] for row, n in zip(order, count.tolist(), strict=True)])
    start = np.concatenate(([0], np.cumsum(count)))
    return PairedStages(low, busy, start, items, first, end, costs.modes.modes)


Pair = tuple[int, int]
BYTES_A_PAIR = 24


class PairPlans(NamedTuple):
    """Plans for the first devices, by the cuts reached; each array has shape (m, m).

    Parameters
    ----------
    value
        The least largest load so far; infinity if there is no plan.
    parent, kind
        The pair of cuts before the last device, and the position of its costs.
    """

    value: Floats
    parent: Ints
    kind: Ints

    @classmethod
    def none(cls, count: int) -> PairPlans:
        """Return the arrays for no plan."""
        shape = count, count
        return cls(np.full(shape, np.inf), np.full(shape, -1, dtype=np.int64), np.zeros(shape, np.int64))


Layer = dict[Used, PairPlans]  # by the number of devices of every kind so far


class PairSearch:
    """A search for stages whose largest load is below a limit; devices of unlike kinds come in any order."""

    def __init__(self, model: VirtualModel, limit: float, settings: Settings) -> None:
        self.model, self.limit, self.settings = model, limit, settings
        self.steps = 0
        self.ends: dict[Pair, tuple[PairedStages, PairedStages]] = {}
        self.joint = [costs.nets(model.shared) for costs in model.costs]

    @property
    def over(self) -> bool:
        """Whether the search is to be cut short."""
        return self.settings.expired or self.steps > self.settings.step_limit

    @property
    def fits(self) -> bool:
        """Whether the tables fit in the memory budget."""
        kinds = sorted({costs.kind for costs in self.model.costs})
        states = np.prod(np.minimum(self.model.problem.count[kinds], self.model.devices) + 1.0)
        return bool(states * len(self.model.cuts) ** 2 * BYTES_A_PAIR <= self.settings.memory_budget)

    def run(self) -> StagesFound:
        """Return stages of the least largest load below the limit."""
        if not self.fits:
            return StagesFound(None, 0.0, complete=False)
        return self._vee() if self.model.schedule.vee else self._rounds()

    def _rounds(self) -> StagesFound:
        model, work, best = self.model, self.model.least_work, StagesFound(None, self.limit, complete=True)
        last = len(model.cuts) - 1
        for middle in np.flatnonzero(model.cuts.nested[0] & model.cuts.nested[:, last]).tolist():
            rest = work[:, middle, None] + work[None, :, last]
            layers = self._walk((0, middle), rest, model.devices)
            if self.over:
                return StagesFound(best.stages, 0.0, complete=False)
            for used, reached in layers[-1].items():
                value = float(reached.value[middle, last])
                if value < self.limit and model.obeys(used):
                    self.limit = value
                    one, other, kinds = self._paths(layers, used, (middle, last))
                    stages = DealtStages(np.array([*one, *other[1:]]), np.array(kinds))
                    best = StagesFound(stages, value, complete=True)
        return best

    def _vee(self) -> StagesFound:
        model, best = self.model, StagesFound(None, self.limit, complete=True)
        last = len(model.cuts) - 1
        layers = self._walk((0, last), model.least_work, model.devices - 1)
        if self.over:
            return StagesFound(None, 0.0, complete=False)
        for used, reached in layers[-1].items():
            for place in range(len(model.costs)):
                after = model.with_one(used, place)
                if after is None or not model.obeys(after):
                    continue
                final = self._middles(reached.value, place)
                pair = divmod(int(np.argmin(final)), last + 1)
                if final[pair] < self.limit:
                    self.limit = float(final[pair])
                    front, back, kinds = self._paths(layers, used, pair)
                    borders = [*front, middle_of(model, place, *pair)[0], *back[::-1]]
                    stages = DealtStages(np.array(borders), np.array([*kinds, place]))
                    best = StagesFound(stages, self.limit, complete=True)
        return best

    def _walk(self, start: Pair, rest: Floats, devices: int) -> list[Layer]:
        """Return the plans for none of the devices, for the first one, and so on."""
        model, count = self.model, len(rest)
        layers: list[Layer] = [{model.none_used: PairPlans.none(count)}]
        layers[0][model.none_used].value[start] = 0.0
        for rank in range(devices):
            enough = rest <= model.room(model.devices - 1 - rank) * self.limit
            found: Layer = {}
            for used, reached in layers[-1].items():
                for place in range(len(model.costs)):
                    after = model.with_one(used, place)
                    if after is not None and not self.over:
                        to = found.setdefault(after, PairPlans.none(count))
                        self._step(reached, rank, place, enough, to)
            layers.append(found)
        return layers

    def _step(self, reached: PairPlans, rank: int, place: int, enough: Bools, found: PairPlans) -> None:
        """Extend plans by a device of one kind."""
        model = self.model
        before = found.value.copy() if len(model.costs) > 1 else None
        room = model.costs[place].memory if model.scarce else np.inf
        joint = JointLimits(self.joint[place], model.samples(rank).astype(np.float64), room)
        front, back = self._ends(rank, place)
        given = reached.value, self.limit, enough, front, back, joint
        self.steps += next_device(*given, found.value, found.parent)
        if before is not None:
            found.kind[found.value < before] = place

    def _ends(self, rank: int, place: int) -> tuple[PairedStages, PairedStages]:
        """Return the stages that a device of one kind may take at either place."""
        if (rank, place) not in self.ends:
            model, samples = self.model, self.model.samples(rank)
            kind = model.costs[place], model.low[place]
            one = end_of(model, *kind, samples[:, 0], False)
            self.ends[rank, place] = one, end_of(model, *kind, samples[:, 1], model.schedule.vee)
        return self.ends[rank, place]

    def _middles(self, value: Floats, place: int) -> Floats:
        """Return the values if the last device of a V takes all between two cuts, shape (m, m)."""
        found: Floats = np.maximum(value, self.model.alone[place].max(axis=0))
        for pair in np.argwhere(found < self.limit).tolist():
            found[tuple(pair)] = max(value[tuple(pair)], middle_of(self.model, place, *pair)[1])
        return found

    def _paths(self, layers: list[Layer], used: Used, at: Pair) -> tuple[list[int], list[int], list[int]]:
        """Return the cuts that lead to a pair at the front and at the back, and the devices' kinds."""
        front, back, kinds = [at[0]], [at[1]], list[int]()
        for layer in layers[:0:-1]:
            reached = layer[used]
            place = int(reached.kind[at])
            at = divmod(int(reached.parent[at]), len(reached.parent))
            kind, degree = self.model.costs[place].kind, self.model.costs[place].degree
            used = (*used[:kind], used[kind] - degree, *used[kind + 1 :])
            front, back, kinds = [at[0], *front], [at[1], *back], [place, *kinds]
        return front, back, kinds


def middle_of(model: VirtualModel, place: int, a: int, b: int) -> tuple[int, float]:
    """Return the cut that best divides the two stages of the last device of a V, and the load with it.

    It is -1, and the load infinite, if none is allowed.
    """
    costs = model.costs[place]
    between = np.flatnonzero(costs.allowed[a] & costs.allowed[:, b])
    order = between[np.argsort(np.abs(costs.busy[a, between] - costs.busy[between, b]), kind="stable")]
    load = float(model.alone[place, :, a, b].max())
    if not len(order) or not model.scarce:
        return (int(order[0]), load) if len(order) else (-1, np.inf)
    modes, time = costs.modes, costs.busy[a, order] + costs.busy[order, b]
    first, end = (np.stack((each[a, order], each[order, b]), axis=1) for each in (modes.first, modes.end))
    time = time if model.chooses else np.full(len(order), costs.busy[a, b])
    samples = model.samples(model.devices - 1).astype(np.float64)
    found, least = cheapest_middle(modes.modes, first, end, time, samples, costs.memory)
    if found < 0:
        return -1, np.inf
    return int(order[found]), load + least - float(costs.busy[a, b]) if model.chooses else load
