"""The parts of ``bench_aiconfigurator.py``."""
