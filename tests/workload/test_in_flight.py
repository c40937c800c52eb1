"""What stages hold is what published planners and runtimes count, each rule written out on its own."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import pytest

from partitioner import OptionError
from partitioner.workload.in_flight import RULES, SCHEDULES, Held, samples_in_flight, stash

STAGES = [(stage, stages) for stages in range(1, 17) for stage in range(stages)]
CASES = [(stage, stages, batch) for stage, stages in STAGES for batch in range(1, 65)]
DEGREES = (1, 2, 3, 4, 8)
in_cases = pytest.mark.parametrize(
    "cases", [CASES[::13], pytest.param(CASES, marks=pytest.mark.slow)], ids=["few", "all"]
)


def replications() -> Iterator[list[int]]:
    """Replicas of up to four stages, each of every degree."""
    for stages in range(1, 5):
        yield from map(list, itertools.product(DEGREES, repeat=stages))


@in_cases
def test_gpipe_keeps_every_sample_until_the_flush(cases: list[tuple[int, int, int]]) -> None:
    """GPipe, and Galvatron's `gpipe`: all chunks."""
    for stage, stages, batch in cases:
        assert stash("gpipe", stage, stages, batch) == (batch, 1)


@in_cases
def test_inference_keeps_one_sample(cases: list[tuple[int, int, int]]) -> None:
    for stage, stages, batch in cases:
        assert stash("inference", stage, stages, batch) == (1, 1)


@in_cases
def test_1f1b_is_megatrons_warm_up_and_the_sample_at_work(cases: list[tuple[int, int, int]]) -> None:
    """`num_warmup_microbatches = min(p - i - 1, m)`; what is not warm-up leaves one more in flight."""
    for stage, stages, batch in cases:
        warmup = min(stages - stage - 1, batch)
        assert stash("1f1b", stage, stages, batch) == (warmup + (batch > warmup), 1)


@in_cases
def test_1f1b_is_galvatrons_where_the_batch_is_as_long_as_the_pipeline(
    cases: list[tuple[int, int, int]],
) -> None:
    for stage, stages, batch in cases:
        if batch >= stages:
            assert stash("1f1b", stage, stages, batch).activations == stages - stage


@in_cases
def test_deepspeed_keeps_two_buffers_where_one_would_do(cases: list[tuple[int, int, int]]) -> None:
    """`max(2, min(p - i, m))`: one more than ours on the last stage and for batches of one, else the same."""
    for stage, stages, batch in cases:
        ours, buffers = stash("1f1b", stage, stages, batch).activations, max(2, min(stages - stage, batch))
        alone = stage == stages - 1 or batch == 1
        assert buffers - ours == (1 if alone else 0)


def test_alpa_accepts_a_stage_where_ours_fits() -> None:
    """Alpa: the later stages number at most floor((available - peak - initial) / intermediate - 1).

    Its peak is what one sample needs while it runs, beyond the intermediates of those in flight.
    """
    peak, initial, intermediate = 3, 2, 4
    for (stage, stages), available in itertools.product(STAGES, range(5, 80)):
        accepted = stages - stage - 1 <= math.floor((available - peak - initial) / intermediate - 1)
        in_flight = stash("1f1b", stage, stages).activations
        assert accepted == (peak + initial + in_flight * intermediate <= available)


def test_1f1b_is_nnscalers_stages_counted_from_the_end() -> None:
    for stage, stages in STAGES:
        assert stash("1f1b", stage, stages).activations == len(range(stage, stages))


def test_1f1b_with_replicas_is_pipers_rule() -> None:
    """Piper: ceil(s / d), where s counts the devices from this stage on and d those of the stage."""
    for replicas in replications():
        for stage in range(len(replicas)):
            expected = math.ceil(sum(replicas[stage:]) / replicas[stage])
            assert stash("1f1b", stage, len(replicas), replicas=replicas) == (expected, 1)
            assert stash("1f1b_async", stage, len(replicas), replicas=replicas) == (expected, expected)


def test_pipedreams_planner_counts_one_less_than_ours() -> None:
    """PipeDream: ceil((M - u) / r) with u the machines up to this stage: the last stage gets 0, ours 1."""
    for replicas in replications():
        for stage, own in enumerate(replicas):
            machines, used = sum(replicas), sum(replicas[: stage + 1])
            expected = math.ceil((machines - used) / own)
            assert stash("pipedream", stage, len(replicas), replicas=replicas) == (expected, expected)
            ours = stash("1f1b_async", stage, len(replicas), replicas=replicas)
            assert ours == (expected + 1, expected + 1)
        assert stash("pipedream", len(replicas) - 1, len(replicas), replicas=replicas) == (0, 0)


@in_cases
def test_equal_replicas_split_the_batch_and_change_nothing_else(cases: list[tuple[int, int, int]]) -> None:
    """As many pipelines side by side, each with its share of the batch."""
    for (stage, stages, batch), own in itertools.product(cases[::7], DEGREES):
        for schedule in SCHEDULES:
            alone = stash(schedule, stage, stages, math.ceil(batch / own))
            assert stash(schedule, stage, stages, batch, own) == alone


@in_cases
def test_interleaved_is_megatrons_warm_up_and_the_chunk_at_work(cases: list[tuple[int, int, int]]) -> None:
    """2 (p - i - 1) + (v - 1) g chunks of warm-up, at most all m v; then one more if any is left."""
    for (stage, stages, batch), chunks, group in itertools.product(cases[::5], (2, 3, 4), (None, 1, 5)):
        warmup = min(2 * (stages - stage - 1) + (chunks - 1) * (group or stages), batch * chunks)
        found = stash("interleaved", stage, stages, batch, chunks=chunks, group=group)
        assert found == (warmup + (warmup < batch * chunks), 1)


def test_interleaved_first_stage_is_megatrons_estimate_without_a_limit() -> None:
    """Megatron's estimator: the first device keeps 1 + (p - 1) / (p v) times what p whole stages leave."""
    for stages, chunks in itertools.product(range(1, 17), (2, 3, 4)):
        found = stash("interleaved", 0, stages, chunks=chunks).activations
        assert math.isclose(found / chunks, stages * (1 + (stages - 1) / (stages * chunks)))


@in_cases
def test_zero_bubble_schedules(cases: list[tuple[int, int, int]]) -> None:
    """ZB-H1 keeps no more than 1F1B; ZB-H2 up to 2p - 1 on the first stage, as far as the batch goes."""
    for stage, stages, batch in cases:
        assert stash("zb-h1", stage, stages, batch) == stash("1f1b", stage, stages, batch)
        assert stash("zb-h2", stage, stages, batch).activations <= min(2 * stages - 1, batch)
        assert stash("zb-h2", 0, stages, batch) == (min(2 * stages - 1, batch), 1)


@in_cases
def test_versions_do_not_depend_on_a_batch(cases: list[tuple[int, int, int]]) -> None:
    for stage, stages, batch in cases[::7]:
        for schedule in ("1f1b_async", "pipedream"):
            assert stash(schedule, stage, stages, batch) == stash(schedule, stage, stages)


def test_the_low_form_takes_the_devices_behind() -> None:
    assert samples_in_flight("1f1b", 5, 2) == Held(4, 1)
    assert samples_in_flight("1f1b", 5, 2, 5) == Held(3, 1)
    assert samples_in_flight("gpipe", 5, 2, 5) == Held(3, 1)
    assert samples_in_flight("1f1b_async", 5, 2, 5) == Held(4, 4)


@pytest.mark.parametrize(
    ("arguments", "options", "text"),
    [
        (("2f2b", 0, 1), {}, "schedule = '2f2b': must be one of inference, gpipe"),
        ((None, 0, 1), {}, "schedule = None"),
        ((["1f1b"], 0, 1), {}, "schedule = "),
        (("gpipe", 0, 1), {}, "microbatches = None: schedule 'gpipe' needs it"),
        (("1f1b", 0, 1, 0), {}, "microbatches = 0: must be an integer of at least 1"),
        (("1f1b_async", 0, 1, 1.5), {}, "microbatches = 1.5"),
        (("interleaved", 0, 1, True), {"chunks": 2}, "microbatches = True"),
        (("1f1b", 0, 0), {}, "stages = 0"),
        (("1f1b", 4, 4), {}, "stage = 4: must be an integer from 0 to 3"),
        (("1f1b", -1, 4), {}, "stage = -1"),
        (("1f1b", True, 4), {}, "stage = True"),
        (("1f1b", 0, 2), {"replicas": 0}, "replicas = 0"),
        (("1f1b", 0, 2), {"replicas": None}, "replicas = None"),
        (("1f1b", 0, 2), {"replicas": [1]}, "replicas = [1]: must be an integer of at least 1, or 2 of them"),
        (("1f1b", 0, 2), {"replicas": [1, 0]}, "replicas = [1, 0]"),
        (("1f1b", 0, 2), {"chunks": 2}, "chunks = 2: must be 1 for schedule '1f1b'"),
        (("interleaved", 0, 2), {}, "chunks = 1: must be an integer of at least 2"),
        (("interleaved", 0, 2), {"chunks": 2, "group": 0}, "group = 0"),
    ],
)
def test_what_means_nothing_is_refused(arguments: tuple[Any, ...], options: Any, text: str) -> None:
    with pytest.raises(OptionError) as caught:
        stash(*arguments, **options)
    assert text in str(caught.value)


def test_the_low_form_does_not_know_interleaved() -> None:
    with pytest.raises(OptionError, match="schedule = 'interleaved'"):
        samples_in_flight(RULES[-1], 0)
