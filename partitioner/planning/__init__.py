"""The verbs: solve, evaluate, certify, compare, split operations."""
