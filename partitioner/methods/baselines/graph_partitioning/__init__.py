"""Graph partitioners as baselines: parts of equal work, with little between them."""
