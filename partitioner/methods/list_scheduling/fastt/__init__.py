"""FastT (Yi et al., 2020): the critical path gets devices of its own, and its operations are split."""
