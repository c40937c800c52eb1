"""The contraction of the user's graph to a problem in arrays, which the methods solve."""
