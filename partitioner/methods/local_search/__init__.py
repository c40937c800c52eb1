"""Local search over the nets: annealing with moves of nodes, nets and clusters; the paper's baseline."""
