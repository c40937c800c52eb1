"""Tests of language models from their configs."""
