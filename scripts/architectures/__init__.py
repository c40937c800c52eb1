"""Seeded generator of profiled neural-network graphs from published dimensions."""
