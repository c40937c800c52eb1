"""Tests of Celeritas."""
