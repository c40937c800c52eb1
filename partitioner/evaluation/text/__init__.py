"""Evaluations as text: numbers, names, and tables of devices and schedules."""
