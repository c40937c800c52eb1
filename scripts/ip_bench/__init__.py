"""What solvers and settings make of convex and free splits, one run after the other."""
