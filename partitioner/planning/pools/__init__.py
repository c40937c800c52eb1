"""Pools of unlike GPUs: what they have, how they are divided into pipelines, and training on them."""
