"""The integer program for latency (paper, Figures 5 and 6), and a model of the same problem for CP-SAT."""
