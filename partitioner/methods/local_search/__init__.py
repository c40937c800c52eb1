"""Local search: simulated annealing with moves of supernodes, nets and clusters."""
