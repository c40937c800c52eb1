"""The parts of ``bench_pools.py``."""
