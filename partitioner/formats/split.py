"""The split JSON of msr-fiddle/dnn-partitioning: `fpgas` and `cpus`, each a list of devices with `nodes`."""

from __future__ import annotations

from partitioner.base.errors import shown
from partitioner.formats.record import Record, identifier, listing
from partitioner.workload.graph import NodeId

SPLIT_KINDS = {"fpgas": "accelerator", "cpus": "cpu"}


def read_split(top: Record) -> dict[NodeId, str]:
    """Return the device of every node that a split places."""
    placement: dict[NodeId, str] = {}
    seen: set[str] = set()
    for field, kind in SPLIT_KINDS.items():
        for place, data in enumerate(top.take(field, listing, [])):
            record = Record(data, f"{field}[{place}]", top.flaws)
            for item in record.take("nodes", listing, []):
                entry = Record({"nodes": item}, record.where, top.flaws)
                node = entry.take("nodes", identifier, None)
                if str(node) in seen:
                    record.note("nodes", shown(node), "is placed twice")
                elif node is not None:
                    placement[node] = f"{kind}{place}"
                    seen.add(str(node))
    return placement
