"""The solvers that can run a program, a thin file each."""
