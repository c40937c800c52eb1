"""Notes for the user on bounds of the search over explicit groups of devices."""

from __future__ import annotations

from dataclasses import replace

from partitioner.methods.method import ANY_DEVICES, Outcome, meets

UNKNOWN_ENDS = (
    "the lower bound takes tensors that may pass over a stage to travel on the fastest link of their group"
)


def among_groups(outcome: Outcome, replicas: int, wide: float) -> Outcome:
    """Return the outcome with notes: on a gap, and on the pipelines for which its bound holds if not all.

    Parameters
    ----------
    outcome
        The best pipeline whose stages each have their devices in one group.
    replicas
        The most devices that a stage may have; with one, every pipeline is of that form.
    wide
        A lower bound for pipelines on any devices.
    """
    if outcome.parts is not None and not meets(outcome.bound, outcome.value):
        outcome = replace(outcome, notes=(*outcome.notes, UNKNOWN_ENDS))
    if replicas == 1:
        return outcome
    outcome = replace(outcome, statistics={**outcome.statistics, ANY_DEVICES: min(wide, outcome.bound)})
    if meets(wide, outcome.bound):
        return outcome
    proof = "optimal" if outcome.stop_reason == "optimal" else "the lower bound holds"
    note = (
        f"{proof} among pipelines in which the devices of each stage are in one group; for any other choice "
        f"of devices the lower bound is {wide:.6g}"
    )
    return replace(outcome, notes=(*outcome.notes, note))
