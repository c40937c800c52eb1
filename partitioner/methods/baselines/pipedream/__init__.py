"""PipeDream's planner (Narayanan et al., SOSP 2019): replicated pipelines over levels of machines."""
