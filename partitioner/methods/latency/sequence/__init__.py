"""Method ``latency_dp``: blocks one after another by dynamic programming, then with true start times."""
