"""Layouts of a language model on a cluster: degrees of parallelism, microbatch, schedule, recomputation."""
