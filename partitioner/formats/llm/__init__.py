"""Language models from the sizes in their configs: operators, blocks, families, layers."""
