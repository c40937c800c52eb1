"""FastT (Yi et al., 2020): the critical path on devices of its own, and operations split along it."""
