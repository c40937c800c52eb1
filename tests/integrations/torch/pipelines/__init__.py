"""Pipelines of models of torch."""
