"""Lower bounds on the value of any plan."""
