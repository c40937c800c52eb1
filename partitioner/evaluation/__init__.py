"""What the evaluator looks at: the placement as arrays, its costs, broken rules, and shape."""
