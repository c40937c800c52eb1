"""Local search that starts from the placement of a list scheduler."""
