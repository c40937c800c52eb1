"""How much the searches for sequences of blocks do."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SequenceEffort:
    """How large the lattices of sequences are, how many plans are kept, and how they are looked for.

    Measured at half and at twice each value. On five inference workloads of `instances/` whose ideals are all
    walked (bert24, bert3_operator, gnmt, gpt3_13b, resnet50) no field changes latency or steps. On two whose
    ideals are too many (gnmt_operator, inceptionv3) the steps, 6.6 million, change as said below, and the
    latencies only with half the `width`, by 0.02 %.

    Parameters
    ----------
    ideals
        The most ideals of a lattice.
    ideals_per_second, ordered_per_second
        Ideals that are enumerated and walked in a second, and supernodes of an order whose table is filled in
        one; they count where there is a time limit.
    covers
        The most covers of an ideal, on average.
    few_ideals
        The most ideals of a lattice around the best plan. Steps: -21 and +62 %.
    first_share, share_step
        The share of the edges inside blocks whose ends are merged around the best plan: the first one, and
        the step by which it grows while there are too many ideals. Steps: -6 and -15 % for the first, +15 and
        -3 % for the second.
    states
        The most vectors of used devices.
    tried
        The most plans of a lattice that are packed onto devices.
    width
        The most plans that the beam search keeps for an ideal and a vector.
    fair_work, most_work
        Steps times vectors up to which the beam search keeps more than one plan, and beyond which no search
        is made.
    length_weight
        The weight of the total length of its blocks in the rating of a plan.
    paths
        The paths whose mean bounds the length of blocks on kinds that do not pay.
    attempts
        The bins tried to pack the blocks of a kind onto its devices.
    sweep_slice, beam_slice
        Steps between two readings of the clock, of tables and of the beam search; they change no result.
    """

    ideals: int = 200_000
    ideals_per_second: int = 100_000
    ordered_per_second: int = 2_000
    covers: int = 12
    few_ideals: int = 2_000
    first_share: float = 0.2
    share_step: float = 0.05
    states: int = 2**20
    tried: int = 16
    width: int = 4
    fair_work: int = 50_000_000
    most_work: int = 100_000_000
    length_weight: float = 0.001
    paths: int = 16
    attempts: int = 10_000
    sweep_slice: int = 2_000_000
    beam_slice: int = 500_000


EFFORT = SequenceEffort()
