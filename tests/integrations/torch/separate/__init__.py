"""Tests of training steps with a process for each device."""
