"""Servers of a language model: how pools of GPUs, unlike ones too, divide its layers and its users."""
