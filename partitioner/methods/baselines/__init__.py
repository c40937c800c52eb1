"""Methods of others to compare with: PipeDream's planner, Scotch and METIS, simple ones."""
