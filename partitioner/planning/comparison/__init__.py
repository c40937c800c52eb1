"""Side by side: methods on one workload, schedules of one plan."""
