"""Pipelines over levels of devices, such as servers and racks of servers (paper, Appendix H.3)."""
