"""Pools of eight unlike devices, and the models that are measured on their kinds."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import partitioner as pt

BANDWIDTH = 25e9  # bytes per second inside a server
MEMORY = {
    **{"GH-96": 96e9, "A100-80": 80e9, "A100-40": 40e9, "V100-16": 16e9},
    **{"RTX-3090": 24e9, "Titan-RTX": 24e9, "RTX-2080": 8e9},
}
CLOUD = {"server 1": {"GH-96": 2}, "server 2": {"A100-40": 3}, "server 3": {"V100-16": 3}}
MIXED = {
    "server 1": {"GH-96": 1, "A100-80": 1},
    "server 2": {"A100-40": 2, "V100-16": 1},
    "server 3": {"RTX-3090": 1, "Titan-RTX": 1, "RTX-2080": 1},
}
LINKS = (pt.GroupLink(2, ("server 1", "server 2")), pt.GroupLink(20))


@dataclass(frozen=True)
class Pool:
    """A model and eight devices of several kinds.

    Parameters
    ----------
    model, folder
        Its name, and its folder of profiles.
    batch, degree
        The microbatch size, and how many GPUs run a layer together and count as one device.
    servers
        The devices of each server.
    links
        Whether links between servers are slower than inside; else all links are equal.
    """

    model: str
    folder: str
    batch: int
    degree: int
    servers: dict[str, dict[str, int]]
    links: bool

    def workload(self, root: Path) -> pt.Workload:
        """Return the workload, read from the folder of all profiles."""
        return pt.load(
            root / self.folder,
            devices=self.devices,
            batch=self.batch,
            degree=self.degree,
            bandwidth=BANDWIDTH,
        )

    @property
    def devices(self) -> pt.Devices:
        """The devices, in the groups of the servers if links differ."""
        kinds = list(dict.fromkeys(kind for held in self.servers.values() for kind in held))
        counts = {kind: sum(held.get(kind, 0) for held in self.servers.values()) for kind in kinds}
        groups = tuple(pt.DeviceGroup(name, held) for name, held in self.servers.items())
        return pt.Devices(
            tuple(pt.DeviceKind(kind, counts[kind], MEMORY[kind]) for kind in kinds),
            groups=groups if self.links else (),
            links=LINKS if self.links else (),
        )


POOLS = tuple(
    Pool(model, folder, batch, degree, servers, links)
    for links in (False, True)
    for model, folder, batch, degree, servers in (
        ("LLaMA-3-8B", "LLAMA-3-8", 1, 4, CLOUD),
        ("OPT-350M", "OPT-350", 4, 1, MIXED),
        ("GPT-Neo-2.7B", "GPT-Neo-2.7", 1, 1, CLOUD),
    )
)
