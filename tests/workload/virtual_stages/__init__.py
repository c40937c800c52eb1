"""Tests of :mod:`partitioner.workload.virtual_stages`."""
