"""A graph of a model of torch, captured without running it; see `docs/torch.md`."""
