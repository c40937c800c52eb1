"""Schedules with several stages on a device, as data: where stages are, what runs in which order."""
