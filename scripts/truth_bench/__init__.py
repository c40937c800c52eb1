"""Pipelines of real models, whose measured times are compared with predictions and between plans."""
