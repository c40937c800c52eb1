"""List scheduling in plain Python: what is busy when is a list; it shares no code with the methods."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from partitioner import Devices, Graph, Transfers

Interval = tuple[float, float]


@dataclass
class Plain:
    """Nodes by their positions in a graph fitted to the devices, devices by their place among the names."""

    graph: Graph
    devices: Devices
    transfers: Transfers
    insertion: bool = True
    reserve: bool = True
    place: dict[int, tuple[int, float, float]] = field(default_factory=dict)
    busy: dict[int, list[Interval]] = field(default_factory=dict)
    arrived: dict[tuple[int, int], float] = field(default_factory=dict)
    channel: dict[int, float] = field(default_factory=dict)

    def run(self, order: list[int], rule: str) -> bool:
        """Place all nodes in the order; False if one fits nowhere."""
        farthest = 0
        for v in order:
            fitting = [d for d in range(len(self.devices.names)) if self.fits(v, d)]
            if rule == "fill":
                companions = {self.place[u][0] for u in self.companions(v) if u in self.place}
                fitting = [d for d in fitting if d >= farthest or d in companions][:1]
            if not fitting:
                return False
            d = min(fitting, key=lambda d: self.merit(v, d, rule))
            self.put(v, d)
            farthest = max(farthest, d)
        return True

    def merit(self, v: int, d: int, rule: str) -> float:
        """What the rule makes small; the first device wins among equals."""
        start = self.earliest(v, d)
        return start + self.length(v, d) if rule == "earliest_finish" else start

    def put(self, v: int, d: int) -> None:
        """Send the inputs, one after another, and run the node as early as can be."""
        if self.transfers.contention:
            for u, tensor in self.inputs[v]:
                source, _, made = self.place[u]
                if source != d and (tensor, d) not in self.arrived:
                    self.send(source, d, tensor, made)
        start = self.earliest(v, d)
        self.place[v] = (d, start, start + self.length(v, d))
        self.busy.setdefault(d, []).append(self.place[v][1:])

    def send(self, source: int, d: int, tensor: int, made: float) -> None:
        """One transfer on both channels."""
        length = self.duration(source, d, tensor)
        arrival = self.arrival(source, d, tensor, made)
        if length > 0:
            self.channel[source] = max(made, self.channel.get(source, 0.0)) + length
            self.channel[d] = arrival
        self.arrived[tensor, d] = arrival

    def earliest(self, v: int, d: int) -> float:
        """The first moment at which the node can start there."""
        ready = 0.0
        for u, tensor in self.inputs[v]:
            source, _, made = self.place[u]
            there = self.arrived.get((tensor, d), self.arrival(source, d, tensor, made))
            ready = max(ready, made if source == d else there)
        if self.insertion:
            for begin, end in self.gaps(d):
                if max(begin, ready) + self.length(v, d) <= end and ready <= end:
                    return max(begin, ready)
        return max(ready, max((end for _, end in self.busy.get(d, [])), default=0.0))

    def gaps(self, d: int) -> list[Interval]:
        """The time between what runs on a device."""
        free, found = 0.0, []
        for begin, end in sorted(self.busy.get(d, [])):
            if begin > free:
                found.append((free, begin))
            free = max(free, end)
        return found

    def arrival(self, source: int, d: int, tensor: int, made: float) -> float:
        """When a tensor that is sent now would arrive."""
        length = self.duration(source, d, tensor)
        if not self.transfers.contention or length == 0:
            return made + length
        sent = max(made, self.channel.get(source, 0.0))
        return max(sent, self.channel.get(d, 0.0)) + length

    def duration(self, source: int, d: int, tensor: int) -> float:
        slope, intercept = self.lines
        return slope[source][d] * float(self.graph.cost[tensor]) + intercept[source][d]

    def length(self, v: int, d: int) -> float:
        return float(self.graph.time[self.kind(d), v])

    def kind(self, d: int) -> int:
        found = self.devices.kind_of(self.devices.names[d])
        assert found is not None
        return found[0]

    def companions(self, v: int) -> list[int]:
        """The nodes of the same colour, itself included."""
        color = self.graph.color.tolist()
        return [u for u in range(len(color)) if u == v or (color[u] == color[v] and color[v] >= 0)]

    def fits(self, v: int, d: int) -> bool:
        """By its companions, the kind, and the memory that is left."""
        mine, size = self.companions(v), self.graph.size.tolist()
        taken = [u for u, (home, _, _) in self.place.items() if home == d]
        placed = {self.place[u][0] for u in mine if u in self.place}
        if self.reserve:
            taken = [u for u in range(len(size)) if set(taken) & set(self.companions(u))]
        needs = [v] if placed else mine
        if self.reserve and placed:
            needs = []
        room = self.devices.kinds[self.kind(d)].memory_limit - sum(size[u] for u in taken)
        may = bool(self.graph.allowed[self.kind(d), mine].all())
        return may and placed <= {d} and sum(size[u] for u in needs) <= room

    @cached_property
    def lines(self) -> tuple[list[list[float]], list[list[float]]]:
        """Slope and intercept of every pair."""
        slope, intercept = self.transfers.times(self.devices)
        return slope.tolist(), intercept.tolist()

    @cached_property
    def inputs(self) -> list[list[tuple[int, int]]]:
        """For every node the producers of its inputs, and which tensors, named by their first edges."""
        edges, cost = self.graph.edges.tolist(), self.graph.cost.tolist()
        found: list[list[tuple[int, int]]] = [[] for _ in range(len(self.graph))]
        for e, (u, v) in enumerate(edges):
            mine = [f for f, (source, _) in enumerate(edges) if source == u]
            one = len({cost[f] for f in mine}) == 1
            read = (u, mine[0] if one else e)
            if read not in found[v]:
                found[v].append(read)
        return found
