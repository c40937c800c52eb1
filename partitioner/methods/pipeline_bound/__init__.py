"""A lower bound on the makespan of pipelines that knows how they fill and drain."""
