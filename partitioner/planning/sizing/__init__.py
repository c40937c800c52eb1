"""How large a pool must be: the fewest devices, and the least memory of a device, by searches with proofs."""
