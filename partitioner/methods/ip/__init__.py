"""Method ``ip``: integer programs for throughput (paper, Section 5.1.3 and Appendix C), with their bounds."""
