"""The compilation of all kernels at once, into numba's cache."""
