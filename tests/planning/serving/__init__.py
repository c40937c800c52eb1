"""Tests of servers on pools."""
