"""The evaluator: what a placement costs, which rules it breaks, and the shape of its parts."""
