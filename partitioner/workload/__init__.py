"""What a user brings: a graph, devices, and what is demanded of a plan."""
