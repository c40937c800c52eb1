"""The results of the functions `solve`, `certify` and others, and how they are printed."""
