"""A model of torch as a workload whose times and memory are measured."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from partitioner.base.argument_types import check_word, is_count, require_callable
from partitioner.base.errors import NoPlanFound, OptionError, shown
from partitioner.base.interruption import Interruption, StopEvent
from partitioner.estimation.measured import measured
from partitioner.integrations.torch.graphs.graph import check_call
from partitioner.integrations.torch.graphs.nodes import Costs
from partitioner.integrations.torch.installed import require_torch
from partitioner.integrations.torch.profiling.options import CLOCKS, CPU, THREAD, ProfileOptions
from partitioner.methods.method import Progress
from partitioner.workload.devices import Devices
from partitioner.workload.layer_graph import time_per_byte
from partitioner.workload.workload import Workload

if TYPE_CHECKING:
    from partitioner.integrations.torch.profiling.cache import OperatorProfile

STOPPED = "before a round was complete"


def profile(
    model: Any,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any] | None = None,
    *,
    bandwidth: float | None,
    training: bool = True,
    loss: Callable[..., Any] | None = None,
    targets: tuple[Any, ...] = (),
    granularity: str = "operator",
    device: str = CPU,
    clock: str = THREAD,
    devices: Devices | None = None,
    microbatches: int = 1,
    optimizer_bytes: float | None = None,
    warm_up: int = 2,
    tolerance: float = 0.05,
    time_limit: float = 30.0,
    beside: int = 0,
    accumulate: bool = False,
    cache: str | os.PathLike[str] | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    stop: StopEvent | None = None,
) -> Workload:
    """Return a model as a workload, with the times and the memory that its operators really take.

    The model is captured as :func:`graph_of` does it. Then its operators are run one by one, in rounds, and
    the median of each is taken. The model stays as it is: parameters, buffers, gradients and the state of
    the random numbers. ``docs/profiling.md`` says what is measured, and how.

    Parameters
    ----------
    model, args, kwargs, training, loss, targets, granularity, microbatches, optimizer_bytes
        See :func:`graph_of`; the tensors must have data.
    bandwidth
        Bytes per second between a device and host memory. With None the cost of an edge is its bytes, as the
        transfers that :func:`links` measures need it.
    device
        The device that the model and its arguments are on, ``"cpu"`` or ``"cuda"``, with a number if there
        are several.
    clock
        Of a CPU: ``"thread"``, the CPU time of the calling thread, which is all there is if torch has one
        thread; or ``"elapsed"``, the time that passes. A CUDA device records its own events.
    devices
        The devices of the workload; None for two accelerators.
    warm_up
        The rounds that are run but not timed.
    tolerance
        The rounds end once the medians of the first and of the last half of them differ by at most this
        fraction: that of each operator with at least 5 % of the whole time, and that of all other ones.
    time_limit
        Seconds after which no round begins, once there are six; a note says if the times still changed.
    beside
        For a pipeline on one machine: the number of further processes, of one thread each, that run the model
        over and over while it is measured, so that the times are those of processes that share the memory
        and the caches; on a CPU only.
    accumulate
        For a pipeline: whether gradients of parameters are added to those of earlier microbatches, as every
        backward pass of a batch but the first does.
    cache
        A folder for profiles: what was measured of the same captured graph, with the same shapes, on the same
        machine is read from there, else written there. None: nothing is read or written.
    on_progress
        Called with a :class:`partitioner.Progress`, whose value is the time of the last round in ms.
    stop
        Once it is set, or Ctrl-C is pressed, the rounds until then count.

    Returns
    -------
    Workload
        Its times are those of the kind ``"accelerator"``. ``graph.extras.nodes`` has for each node also
        ``outputBytes`` and ``temporaryBytes``, which :func:`layer_memory` reads.

    Raises
    ------
    BackendUnavailable
        If torch is not installed, or for training is of another version than the one known.
    OptionError
        If an option is not of its type or range, or a tensor is not on the device.
    WorkloadError
        If a shape depends on the values of tensors, or a file of the cache is broken.
    NoPlanFound, KeyboardInterrupt
        If the run was stopped before a round was complete.
    """
    check_call(args, targets, loss, training, granularity, microbatches)
    require_callable(on_progress=on_progress)
    options = _options(device, clock, warm_up, tolerance, time_limit, cache, beside, accumulate)
    per_byte = 1.0 if bandwidth is None else time_per_byte(bandwidth)
    costs = Costs({}, None, 1.0, None, per_byte, microbatches, optimizer_bytes)
    require_torch()
    from partitioner.integrations.torch.graphs.capture import seen_and_captured
    from partitioner.integrations.torch.profiling.measure import profile_of, require_device, require_there
    from partitioner.integrations.torch.profiling.measured_graph import measured_graph

    require_device(device)
    given = (*args, *(targets if loss is not None else ()))
    require_there(device, model, (given, kwargs or {}))
    with Interruption(stop) as interruption:
        seen, capture = seen_and_captured(model, tuple(args), kwargs or {}, training, loss, tuple(targets))
        found = profile_of(seen, given, kwargs or {}, options, interruption, on_progress)
    top: dict[str, Any] = {"device": device, "training": training, "microbatches": microbatches}
    top |= {"granularity": granularity, **({} if bandwidth is None else {"bandwidth": bandwidth})}
    graph = measured_graph(seen, capture, _completed(found, interruption), costs, top)
    return Workload(graph, devices or Devices.accelerated(2), type(model).__name__)


def _options(
    device: str,
    clock: str,
    warm_up: int,
    tolerance: float,
    time_limit: float,
    cache: str | os.PathLike[str] | None,
    beside: int,
    accumulate: bool,
) -> ProfileOptions:
    check_word("clock", clock, CLOCKS)
    if not is_count(warm_up, 0):
        raise OptionError(f"warm_up = {shown(warm_up)}: must be an integer of at least 0")
    if not is_count(beside, 0):
        raise OptionError(f"beside = {shown(beside)}: must be an integer of at least 0")
    if beside and device != CPU:
        raise OptionError(f"beside = {beside}: must be 0 for device = {device!r}: only a CPU is shared so")
    if not isinstance(accumulate, bool):
        raise OptionError(f"accumulate = {shown(accumulate)}: must be true or false")
    limits = [float(measured(*each, 0)) for each in (("tolerance", tolerance), ("time_limit", time_limit))]
    return ProfileOptions(device, clock, warm_up, limits[0], limits[1], cache, beside, accumulate)


def _completed(found: OperatorProfile | None, interruption: Interruption) -> OperatorProfile:
    if found is None and interruption.by_keyboard:
        raise KeyboardInterrupt(f"interrupted {STOPPED}")
    if found is None:
        raise NoPlanFound(f"the profile was stopped {STOPPED}")
    return found
