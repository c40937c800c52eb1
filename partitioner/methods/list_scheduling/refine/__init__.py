"""Better placements by local search, from that of a list scheduler."""
