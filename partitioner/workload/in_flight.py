"""The number of samples in flight, and of versions of the weights, that a stage holds at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from partitioner.base.argument_types import MANY, check_word, is_count
from partitioner.base.errors import OptionError, shown
from partitioner.workload.device_validation import MAX_COUNT

SCHEDULES = ("inference", "gpipe", "1f1b", "1f1b_async")
HOLD_A_BATCH = ("gpipe",)  # schedules that hold all samples of a batch
RULES = (*SCHEDULES, "zb-h1", "zb-h2", "pipedream", "interleaved")
WHOLE = f"must be an integer of at least 1 and at most {MANY:,}"


class Held(NamedTuple):
    """The most samples and versions of the weights that a device of a stage holds at once.

    Parameters
    ----------
    activations
        Samples whose activations it keeps; for ``"interleaved"`` counted in chunks of a stage.
    weights
        Versions of its weights.
    """

    activations: int
    weights: int


def stash(
    schedule: str,
    stage: int,
    stages: int,
    microbatches: int | None = None,
    replicas: int | Sequence[int] = 1,
    *,
    chunks: int = 1,
    group: int | None = None,
) -> Held:
    """Return how many samples and versions of the weights each device of a stage holds under a schedule.

    Parameters
    ----------
    schedule
        For plans ``"inference"``, ``"gpipe"``, ``"1f1b"`` (Megatron; Piper with replicas) and
        ``"1f1b_async"`` (PipeDream with weight versions). Further ``"zb-h1"`` and ``"zb-h2"`` (zero
        bubble: forward passes that wait for the gradient of their inputs), ``"interleaved"``
        (Megatron), and ``"pipedream"``, the rule of PipeDream's planner, which does not count the sample
        that is being processed.
    stage, stages
        The stage's number from 0, and the number of stages.
    microbatches
        Samples of a batch, divided among the replicas of a stage. ``"gpipe"`` requires it; for the other
        schedules it is an upper limit; asynchronous schedules do not use it.
    replicas
        The number of devices of every stage: one number for all stages, or one for each.
    chunks, group
        For ``"interleaved"``: into how many parts each device divides its stage, and how many samples pass
        one part before the next part runs (by default the number of stages).

    Raises
    ------
    OptionError
        Naming an option that is unknown, missing or out of its range.

    Examples
    --------
    >>> [stash("1f1b", stage, 4).activations for stage in range(4)]
    [4, 3, 2, 1]
    >>> stash("1f1b_async", 0, 2, replicas=[1, 3])
    Held(activations=4, weights=4)
    """
    _require(
        "stages",
        stages,
        is_count(stages, 1, MAX_COUNT),
        f"must be an integer of at least 1 and at most {MAX_COUNT:,}",
    )
    _require("stage", stage, _is_stage(stage, stages), f"must be an integer from 0 to {stages - 1}")
    devices = replicas if isinstance(replicas, Sequence) else [replicas] * stages
    sound = len(devices) == stages and all(map(is_count, devices))
    _require("replicas", replicas, sound, f"must be an integer of at least 1, or {stages} of them")
    check_schedule(schedule, 1 if microbatches is None else microbatches, RULES)
    behind = sum(devices[stage + 1 :])
    if schedule != "interleaved":
        _require("chunks", chunks, is_count(chunks, 1, 1), f"must be 1 for schedule {shown(schedule)}")
        return samples_in_flight(schedule, behind, devices[stage], microbatches)
    _require("chunks", chunks, is_count(chunks) and chunks > 1, "must be an integer of at least 2")
    group = stages if group is None else group
    _require("group", group, is_count(group), WHOLE)
    check_schedule(schedule, microbatches, RULES)
    in_flight = 2 * _rounded_up(behind, devices[stage]) + (chunks - 1) * group + 1
    if microbatches is not None:
        in_flight = min(in_flight, chunks * _rounded_up(microbatches, devices[stage]))
    return Held(in_flight, 1)


def samples_in_flight(schedule: str, behind: int, replicas: int = 1, microbatches: int | None = None) -> Held:
    """Return what each of `replicas` devices of a stage holds if later stages have `behind` devices.

    The schedule is one of those of :func:`stash` except ``"interleaved"``.

    Raises
    ------
    OptionError
        If the schedule is unknown, or is ``"gpipe"`` and `microbatches` is missing.

    Examples
    --------
    >>> samples_in_flight("1f1b", behind=3, replicas=2)
    Held(activations=3, weights=1)
    """
    check_schedule(schedule, microbatches, RULES[:-1])
    later = _rounded_up(behind, replicas)
    share = None if microbatches is None else _rounded_up(microbatches, replicas)
    if schedule in ("1f1b_async", "pipedream"):
        versions = later + (schedule == "1f1b_async")
        return Held(versions, versions)
    if schedule in HOLD_A_BATCH:
        assert share is not None
        return Held(share, 1)
    in_flight = {"inference": 1, "1f1b": later + 1, "zb-h1": later + 1, "zb-h2": 2 * later + 1}[schedule]
    return Held(in_flight if share is None else min(in_flight, share), 1)


def check_schedule(schedule: object, microbatches: object = None, known: Sequence[str] = SCHEDULES) -> None:
    """Raise if the schedule is unknown, or `microbatches` is not a count or is missing where it is needed.

    Raises
    ------
    OptionError
        Naming the option, its value and what it may be.
    """
    check_word("schedule", schedule, known)
    if microbatches is None:
        _require("microbatches", None, schedule not in HOLD_A_BATCH, f"schedule {schedule!r} needs it")
    else:
        _require("microbatches", microbatches, is_count(microbatches), WHOLE)


def _rounded_up(devices: int, replicas: int) -> int:
    return -(-devices // replicas)


def _require(name: str, value: object, sound: bool, rule: str) -> None:
    if not sound:
        raise OptionError(f"{name} = {shown(value)}: {rule}")


def _is_stage(value: object, stages: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < stages
