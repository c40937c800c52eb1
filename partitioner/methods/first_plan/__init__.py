"""Plans made without compiled code and solvers, so that there is one however short the time limit."""
