"""Lower bounds on chains that count the tensors which every cut must move."""
