"""A lower bound on the makespan of pipelines with several stages on a device, by weighted paths."""
