"""Tests of :mod:`partitioner.methods.virtual_stages`."""
