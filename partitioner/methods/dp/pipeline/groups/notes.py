"""Notes for the user on bounds of the search over explicit groups of devices."""

from __future__ import annotations

from dataclasses import replace

from partitioner.methods.method import ANY_DEVICES, Outcome, meets

UNKNOWN_ENDS = (
    "the lower bound takes tensors that may pass over a stage to travel on the fastest link of their group"
)


def on_unknown_ends(outcome: Outcome) -> Outcome:
    """Return the outcome with a note if its bound leaves a gap."""
    if outcome.parts is None or meets(outcome.bound, outcome.value):
        return outcome
    return replace(outcome, notes=(*outcome.notes, UNKNOWN_ENDS))


def among_groups(outcome: Outcome) -> Outcome:
    """Return the outcome with notes: on a gap, and on the pipelines for which its bound holds if not all.

    Parameters
    ----------
    outcome
        The best pipeline whose stages each have their devices in one group, with the bound for pipelines on
        any devices among its statistics.
    """
    wide = outcome.statistics.get(ANY_DEVICES, outcome.bound)
    outcome = on_unknown_ends(outcome)
    if outcome.parts is None or meets(wide, outcome.bound):
        return outcome
    proof = "optimal" if outcome.stop_reason == "optimal" else "the lower bound holds"
    note = (
        f"{proof} among pipelines in which the devices of each stage are in one group; for any other choice "
        f"of devices the lower bound is {wide:.6g}"
    )
    return replace(outcome, notes=(*outcome.notes, note))
