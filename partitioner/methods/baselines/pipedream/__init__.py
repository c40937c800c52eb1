"""PipeDream's planner (Narayanan et al., SOSP 2019) for replicated pipelines over levels of machines."""
