"""What two plans of a workload differ in."""
