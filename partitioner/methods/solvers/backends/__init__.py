"""The backends: one file for each solver of integer programs."""
