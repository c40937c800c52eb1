"""The integer program of Figures 5 and 6, and the same problem for CP-SAT."""
