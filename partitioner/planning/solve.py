"""The public function `solve`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import networkx as nx

from partitioner.base.argument_types import require_callable, require_type
from partitioner.base.errors import InfeasibleError, OptionError
from partitioner.base.interruption import StopEvent
from partitioner.evaluation.solution import AnySolution
from partitioner.methods.method import Progress
from partitioner.planning.alternatives import method_under, require_choosing
from partitioner.planning.input_operators import CHOICE as INPUT_OPERATORS
from partitioner.planning.input_operators import copies_of, note_without_copies, plan_with_copies
from partitioner.planning.objectives import DEFAULT, SIMULATED, default_objective, objective_of
from partitioner.planning.options import check_values, request_of
from partitioner.planning.remedies import remedies
from partitioner.planning.request import ANY_PLAN
from partitioner.planning.tied_weights import CHOICE as TIED
from partitioner.planning.tied_weights import decides, note_on_tying
from partitioner.problem.measure import Measure
from partitioner.results.plan import Plan
from partitioner.workload.devices import Devices
from partitioner.workload.graph import Graph
from partitioner.workload.input_operators import AUTO
from partitioner.workload.networkx_graph import as_graph, unread_note
from partitioner.workload.training_states import as_trained
from partitioner.workload.workload import Workload

TIMED = "the objective is the makespan of a batch, as a schedule and its microbatches are given"


def solve(
    graph: Graph | nx.DiGraph[Any],
    devices: Devices,
    objective: str | None = None,
    *,
    method: str = "auto",
    split: str | None = None,
    backend: str = "auto",
    time_limit: float | None = None,
    gap: float = 0.0,
    seed: int = 0,
    workers: int | None = None,
    warm_start: AnySolution | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    stop: StopEvent | None = None,
    **method_options: Any,
) -> Plan:
    """Split a graph over devices as well as possible, with a proof of how good the split is.

    Parameters
    ----------
    graph
        The profiled graph; a networkx graph has the attributes that
        :func:`partitioner.from_networkx` reads.
    devices
        The hardware.
    objective
        By default ``"makespan"`` if `schedule` and `microbatches` are given, else ``"throughput"``.
        ``"throughput"``: the largest load of a device (paper, Section 5); ``"gpipe"``: the largest
        forward load plus the largest backward load (Section 5.3); ``"latency"``: the time of a single
        sample, with subgraphs that run without interruption (Section 4, Appendix A); ``"batch"``: the
        time of `microbatches` samples that fill and drain a pipeline; ``"piper"``: the largest load in the
        model of Piper (NeurIPS 2021), see ``docs/alternatives.md``; ``"makespan"``: when the last
        operator ends if devices run them one by one, or, if `schedule` and `microbatches` are given, what
        :func:`partitioner.schedule.simulate` finds for such a pipeline. ``"capacity"`` is the only one that
        is maximised: the most samples in flight with which every device fits its memory, and among plans
        with that many the least largest load (`docs/serving.md`).
    method
        A name that ``partitioner methods`` lists; ``"auto"`` takes the strongest that applies.
    split
        ``"chain"``: a pipeline of stages; ``"convex"``: the forward part of every device is contiguous
        (Definition 3.1); ``"free"``: anything. By default chains, for latency convex subgraphs, and for
        ``"makespan"`` free splits; a method that cannot make these makes its first one.
    backend
        The solver to use, for methods that can choose; ``"auto"`` takes the best ones present.
    time_limit
        Seconds after which the best plan found so far is returned. Compiling kernels, which is done once on
        a machine, is not counted; a note of the plan says how long it took. A limit that is over before a
        graph of this size can be contracted and evaluated is refused.
    gap
        Stop once the plan is proven within this fraction of the optimum.
    seed
        Seed of everything random. Methods that one thread runs (``dp``, ``dpl``, ``pipeline``,
        ``local_search``, ``latency_search``, the placers but ``portfolio`` and ``exact``) give the same plan
        for the same seed if no time limit ends them. Methods ``ip``, ``latency_ip``, ``portfolio`` and
        ``exact`` let solvers and searches run by the clock, so that plans of one seed may differ within the
        gap, unless `deterministic` is set.
    workers
        How many cores may be used, 1 to 1,024, by default all; the dynamic programs use one. If the
        machine has fewer, a note of the plan says so.
    warm_start
        A plan, solution or placement to start from; it is used if it is feasible and of the shape asked for.
    on_progress
        Called with a :class:`partitioner.Progress` from time to time. An exception that it raises ends the
        run and is passed on to the caller; no process and no file is left behind.
    stop
        A ``threading.Event``, or any object with a method ``is_set``. Once it is set, the run ends at its
        next check with the best plan found so far, whose `stop_reason` is then ``"interrupted"``.
    **method_options
        ``granularity``: ``"operator"`` or ``"layer"`` (keep the nodes of a layer together);
        ``memory_budget``: bytes for the exact search (4 GiB); ``step_limit``: its steps (two billion,
        some minutes); ``orders``: how many linear orders to try (12); ``contiguous_cpus``: must a convex
        split be contiguous on devices that pay no transfers too (True)? ``contiguous_backward``: must
        its backward part be contiguous too (False)? ``deterministic``: must the same call give the same
        plan wherever only the gap or a proof ends it (False)? Then one core works on one task after
        another, and work is counted in moves, steps and nodes; under a time limit that is reached the
        clock decides all the same. ``subgraphs_per_accelerator``: how many subgraphs of
        each pass an accelerator may hold, for latency (1). For chains: ``replicas``: how many devices may
        share a stage (1); ``schedule``: ``"inference"``, ``"gpipe"``, ``"1f1b"`` or ``"1f1b_async"``, which
        says how many samples a stage holds (None: memory does not depend on it), or one with several stages
        on a device: ``"interleaved_1f1b"`` and ``"zb_h1"`` (stage i on device i mod p), ``"zbv"`` and
        ``"dualpipev"`` (stages i and 2 p - 1 - i on device i); ``virtual_stages``: how many stages each
        device has under these (2, under ``"zb_h1"`` 1); ``microbatches``: samples in a batch (None). For
        training: ``recompute``, ``zero`` and ``data_parallel``, ``optimizer``, ``tied``: what layers compute
        again, what replicas divide, the state of the optimizer, and whether tied weights have copies
        (``"copied"``, ``"together"``, or the better one, ``"auto"``), see
        :func:`partitioner.with_training_states`; the plan is one of that graph. ``input_operators``: whether
        the results of those that depend on inputs alone, such as masks, are ``"sent"`` (None too), or every
        stage that reads them computes them, ``"copied"``, or the better one, ``"auto"``. For
        capacity: ``max_time_per_sample``: the largest load that a device may have (None);
        ``max_slowdown``: the same as a multiple of the least one (None). ``constraints``: what else
        to keep to, :class:`partitioner.Constraints`. For operators one by one, the fields of
        :class:`partitioner.Placing`: ``refine``, ``reserve_memory``, ``uniform``, ``sct_threshold``,
        ``grouper``, ``fuse``, ``fusion_range``, ``fusion_memory``, ``imbalance``, ``transfers`` and
        ``placer``. An option that has no effect on the method, objective or
        split asked for is refused, or noted in the plan where that does no harm. ``docs/options.md`` has a
        table of all options.

    Returns
    -------
    Plan
        Its value is computed by :func:`partitioner.evaluate`, for a makespan by
        :func:`partitioner.schedule.simulate`, never by the method.

    Raises
    ------
    WorkloadError
        If the graph and the devices do not fit together.
    OptionError
        If an option has a value it may not have.
    InfeasibleError
        If it is proven that no split obeys the limits; its `remedies()` are options with which there is a
        plan, and the memory that is missing.
    NoPlanFound
        If the method ended without a plan and without such a proof.

    Examples
    --------
    >>> graph = Graph.from_arrays({"accelerator": [3.0, 1.0, 2.0]}, [(0, 1), (1, 2)], cost=0.5)
    >>> plan = solve(graph, Devices.accelerated(2))
    >>> plan.value, plan.status, plan.stages
    (3.5, 'optimal', ('accelerator0', 'accelerator1'))
    """
    require_type("devices", devices, Devices)
    require_callable(on_progress=on_progress)
    check_values(backend=backend, method=method, split=split)
    wanted = objective_of(DEFAULT if objective is None else objective, method, method_options)
    noted: tuple[str, ...] = ()
    if not isinstance(graph, Graph):
        graph = as_graph(graph, devices)
        noted = unread_note(graph)
    asked: dict[str, Any] = {"method": method, "split": split, "backend": backend, "seed": seed, "stop": stop}
    asked |= method_options
    searched = {"gap": gap, "workers": workers, "warm_start": warm_start, "on_progress": on_progress}
    again = partial(_again, graph, devices, objective, asked | searched)
    if decides(graph, method_options):
        return TIED.best_of_both(again, time_limit)
    given = graph
    graph = as_trained(graph, method_options)
    if objective is None:
        decided = default_objective(method, split, method_options, bool(graph.backward.any()))
        wanted = objective_of(decided, method, method_options)
        noted += (TIMED,) if wanted is SIMULATED else ()
    check_time_limit(graph, wanted.measure, time_limit)
    copies = copies_of(graph, wanted, method_options)
    noted += note_without_copies(graph, method_options)
    if copies == AUTO:
        return INPUT_OPERATORS.best_of_both(again, time_limit)
    if method == "auto":
        require_choosing(method_under(graph, devices, wanted, split, method_options))
    try:
        request = request_of(Workload(graph, devices), wanted, time_limit=time_limit, **searched, **asked)
        if copies:
            search = partial(_again, devices=devices, objective=wanted.name, asked=asked | searched)
            plan = plan_with_copies(graph, request, search, time_limit)
        else:
            plan = wanted.answer(request)
    except InfeasibleError as error:
        brief = partial(solve, objective=wanted.name, gap=ANY_PLAN, workers=1, **asked)
        error.look_for_remedies = partial(remedies, graph, devices, brief)
        raise
    tying = note_on_tying(plan, given, method_options, again, time_limit)
    return replace(plan, notes=(*noted, *plan.notes, *tying)) if noted or tying else plan


def _again(
    graph: Graph, devices: Devices, objective: str | None, asked: Mapping[str, Any], **changes: Any
) -> Plan:
    """Return the plan of a call with other values of some options."""
    return solve(graph, devices, objective, **{**asked, **changes})


# The least time that any call on a graph takes: a time limit below it is refused before any work.

GRACE = 1.0  # seconds by which a run may exceed its limit
# Seconds that each node and each edge takes to contract, to place first and to evaluate: rough fits, up to a
# second off for 100,000 nodes. What a method does beyond that ends with the limit.
COSTS = {Measure.ONE_SAMPLE: (28e-6, 3e-6), Measure.LAST_OPERATOR: (24e-6, 2e-6)}
OTHERS = (22e-6, 2.5e-6)


def least_time_limit(measure: Measure, nodes: int, edges: int) -> float:
    """Return the least time limit in seconds that a run on a graph of this size can keep, within `GRACE`.

    Examples
    --------
    >>> least_time_limit(Measure.LARGEST_LOAD, 20_000, 60_000)
    0.0
    >>> least_time_limit(Measure.LARGEST_LOAD, 200_000, 600_000)
    4.9
    """
    node, edge = COSTS.get(measure, OTHERS)
    return max(0.0, math.ceil(10 * (nodes * node + edges * edge - GRACE)) / 10)


def check_time_limit(graph: Graph, measure: Measure, time_limit: object) -> None:
    """Refuse a time limit within which there can be no plan.

    Raises
    ------
    OptionError
        If the limit is a number below :func:`least_time_limit`.
    """
    if not isinstance(time_limit, int | float) or isinstance(time_limit, bool) or time_limit <= 0:
        return
    nodes, edges = len(graph), len(graph.edges)
    least = least_time_limit(measure, nodes, edges)
    if time_limit < least:
        size = f"{nodes:,} nodes and {edges:,} edges"
        raise OptionError(
            f"time_limit = {time_limit:g}: must be at least {least:g} s for a graph of {size}, since "
            "contracting and evaluating it takes that long"
        )
