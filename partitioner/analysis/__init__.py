"""What is made of plans: explanations, sweeps of many plans, pictures, reports."""
