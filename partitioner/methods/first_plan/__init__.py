"""Plans that need neither compiled code nor a solver: something to return however little time there is."""
