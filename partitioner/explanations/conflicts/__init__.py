"""Which demands conflict where there is no plan: the smallest set of them, and what would leave a plan."""
