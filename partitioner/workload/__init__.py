"""The user's input: a graph, devices, constraints on the plan, and settings of the pipeline."""
