"""The most samples in flight: a search over their number, each step of which is a search for throughput."""
