"""Tests of pools of unlike GPUs."""
