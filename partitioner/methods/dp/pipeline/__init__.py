"""The dynamic program over ideals with replicas, memory by stage, limits and batches (paper, Appendix H)."""
