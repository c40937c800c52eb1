"""Tests of the methods that place operators one by one."""
