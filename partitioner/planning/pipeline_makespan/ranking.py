"""Plans for a schedule and a number of microbatches: the best ones of the dynamic program, simulated."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from partitioner.base.clock import METER
from partitioner.base.errors import ContradictionError, NoPlanFound
from partitioner.base.interruption import CompilationStopped
from partitioner.evaluation.solution import AnySolution
from partitioner.evaluation.time_parts import parts_of_value
from partitioner.methods.method import Settings
from partitioner.planning.alternatives import unused_alternatives
from partitioner.planning.pipeline_makespan.candidates import ANNEALED, TOLERANCE, Ranking
from partitioner.planning.pipeline_makespan.virtual_stages import VirtualRanking
from partitioner.planning.plan_of import Proof, plan_of
from partitioner.planning.request import Request
from partitioner.planning.run_method import notes_on_kernels
from partitioner.results.plan import Plan
from partitioner.schedule import simulate


def find_makespan(request: Request) -> Plan:
    """Return the plan of a request for a simulated ``"makespan"`` of :func:`partitioner.solve`.

    Raises
    ------
    InfeasibleError, NoPlanFound, ContradictionError
        As there.
    """
    regime, settings = request.regime, request.settings
    ranking = (VirtualRanking if regime.has_virtual_stages else Ranking)(request, settings)
    noted = () if ranking.chooses else unused_alternatives(request.graph, request.devices, request.info)
    ranking.request.check_memory()
    with settings.interruption, METER.watched(settings.on_compile):
        noted += _start(ranking, request.options["warm_start"])
        bound = _search(ranking)
    best = ranking.best
    if best is None:
        raise _no_plan(settings)
    again = simulate(request.graph, request.devices, best.solution, regime.schedule, regime.microbatches)
    if again.makespan != best.makespan:
        raise ContradictionError(f"simulated twice, the makespan is {best.makespan!r} and {again.makespan!r}")
    if bound > best.makespan * (1 + TOLERANCE):
        raise ContradictionError(f"the bound {bound!r} exceeds the simulated makespan {best.makespan!r}")
    proof = Proof(
        bound,
        _why_ended(settings, bound, ranking),
        notes=(*request.notes, *noted, *best.evaluation.notes, *notes_on_kernels(request.clock)),
        statistics=ranking.statistics,
    )
    assert regime.microbatches is not None
    parts = parts_of_value(best.evaluation.parts, regime.microbatches, best.makespan)
    evaluation = replace(best.evaluation, value=best.makespan, parts=parts)
    bubbles = dict(zip(again.devices, again.bubble.tolist(), strict=True))
    return plan_of(request, best.solution, evaluation, proof, bubbles)


def _why_ended(settings: Settings, bound: float, ranking: Ranking) -> str:
    """Return why the search ended; the time did it, too, where it ended the search for a candidate."""
    assert ranking.best is not None
    why = settings.ended(bound, ranking.best.makespan)
    return "time_limit" if why == "heuristic" and ranking.cut_short else why


def _start(ranking: Ranking, warm_start: AnySolution | None) -> tuple[str, ...]:
    """Simulate a warm start; return a note if it cannot be used."""
    if warm_start is None:
        return ()
    with suppress(CompilationStopped):
        ranking.start_from(warm_start)
    return () if ranking.best else ("the warm start is not used: it breaks a rule, or it is no chain",)


def _search(ranking: Ranking) -> float:
    """Simulate a first plan, the candidates, and neighbours of the best one; return the lower bound."""
    bound = 0.0
    with suppress(CompilationStopped):
        if isinstance(ranking, VirtualRanking):
            return ranking.search()
        problem = ranking.request.problem()
        if ranking.timed or ranking.settings.expired:
            bound = ranking.first(problem)
        if not ranking.expired:
            busy = max(bound, ranking.candidates())
            bound = max(busy, ranking.fill_and_drain(busy))
            ranking.batches(bound)
            ranking.refine(problem)
            if ranking.timed and not ranking.is_proven(bound):
                ranking.anneal(bound, ANNEALED * ranking.settings.clock.left)
                bound = max(bound, ranking.fill_and_drain(busy, bound))
    return bound


def _no_plan(settings: Settings) -> BaseException:
    """Return the error to raise if no pipeline was found."""
    if settings.interruption.by_keyboard:
        return KeyboardInterrupt()
    why = f" ({settings.stop_reason})" if settings.expired else ": no candidate obeys the rules"
    return NoPlanFound(f"no plan found{why}")
