"""Time and memory of the dynamic programs, each workload in a process of its own."""
