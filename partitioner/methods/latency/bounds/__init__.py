"""Lower bounds on the latency that take no search."""
