"""The dynamic program over ideals for the largest forward load plus the largest backward load."""
