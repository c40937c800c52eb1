"""Sweeps: the product of workloads, pools of devices and options, solved on many cores or on a cluster."""
