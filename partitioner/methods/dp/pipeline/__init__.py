"""The dynamic program with replicas, levels, memory by stage, limits and batches (paper, Appendix H)."""
