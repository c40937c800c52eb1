"""The dynamic program over ideals (paper, Section 5.1.1) and over linear orders (5.1.2)."""
