"""Methods for the latency, the time of a single sample (paper, Section 4, Appendices A and F)."""
