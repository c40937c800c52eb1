"""The exact search for makespans: schedules are built operator by operator, with bounds and dominance."""
