"""Pipelines over levels of devices: servers, racks of servers (paper, Appendix H.3)."""
