"""Measured pipelines of models of torch."""
