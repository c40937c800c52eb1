"""Stages of models that are a line of numbered layers between an embedding and a head."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from partitioner.base.errors import Flaw
from partitioner.exports.module_stages import Stages
from partitioner.exports.stages import stages_of
from partitioner.exports.target import Target
from partitioner.results.plan import Plan
from partitioner.workload.graph import Graph
from partitioner.workload.module_groups import in_block, shared_parameters
from partitioner.workload.modules import Modules, is_list, modules_of, repeated_block, split_number
from partitioner.workload.workload import Workload

MTP = "mtp"  # in the names of modules for multi-token prediction
OPERATORS, EMBEDDING = "operators", "embedding"  # the field of nodes that names operators; that of tokens


@dataclass(frozen=True)
class Blocks:
    """The numbered layers of a plan.

    Parameters
    ----------
    stages
        The stages.
    layers
        The names of the numbered layers, first to last.
    counts
        How many of these each stage has.
    head
        The names of the modules after the numbered layers, all in the last stage.
    """

    stages: Stages
    layers: tuple[str, ...]
    counts: tuple[int, ...]
    head: tuple[str, ...]


def blocks_of(workload: Workload, plan: Plan, target: Target) -> Blocks:
    """Return the numbered layers of a plan, which must be consecutive.

    Raises
    ------
    ExportError
        If there are none, there is a second list of layers, the tool runs language models and the graph has
        no embedding, another module is between two of them in the model, the stages have them in another
        order, the modules before them are not all in the first stage, or those after them not all in the last
        one, or layers on several devices share parameters.
    """
    found = stages_of(workload, plan, target)
    modules = modules_of(workload.graph)
    names = modules.names
    block = repeated_block(names)
    layers = tuple(names[i] for i in block)
    target.refuse(
        [
            *_not_numbered(layers),
            *_further_lists(names, block),
            *(_without_tokens(workload.graph, modules, block) if target.tokens else ()),
        ],
        any_plan=True,
    )
    target.refuse([*_misplaced(found, names, block), *_tied_layers(workload, found, modules)])
    inside = set(layers)
    counts = tuple(len(inside.intersection(stage.modules)) for stage in found.stages)
    return Blocks(found, layers, counts, names[block.stop :])


def _not_numbered(layers: tuple[str, ...]) -> Iterator[Flaw]:
    """Yield a flaw for each module that is not the next layer after the one before it."""
    if not layers:
        yield Flaw("modules", "", "", "no name has a number, such as layers.0: there are no layers to count")
        return
    prefix, first, suffix = split_number(layers[0])
    for i, name in enumerate(layers):
        expected = f"{prefix}{(first or 0) + i}{suffix}"
        if split_number(name) != split_number(expected):
            rule = f"must be {expected}: layers are numbered without gaps, and nothing stands between them"
            yield Flaw(f"module {name}", "", "", rule)
            return


def predicting(names: Iterable[str]) -> tuple[str, ...]:
    """Return the modules for multi-token prediction, which tools count among the layers.

    Examples
    --------
    >>> predicting(["norm", "mtp.0", "head"])
    ('mtp.0',)
    """
    return tuple(name for name in names if MTP in name.lower())


def _further_lists(names: tuple[str, ...], block: range) -> Iterator[Flaw]:
    """Yield a flaw for each further list of layers: as of an encoder, or of the stages of an image model.

    That is a list with two consecutive numbers, or one whose own name is that of the largest list.
    """
    if not block:
        return
    prefix, _, suffix = split_number(names[block.start])
    found: dict[tuple[str, str], list[int]] = {}
    for name in names:
        before, number, after = split_number(name)
        listed = number is not None and MTP not in name.lower()
        if listed and (before, after) != (prefix, suffix):
            found.setdefault((before, after), []).append(number or 0)
    for (before, after), numbers in found.items():
        several = is_list(before) and any(number + 1 in numbers for number in numbers)
        alike = _own_name(before) == _own_name(prefix) and after == suffix
        if several or alike:
            rule = f"is a list of layers beside {prefix}*{suffix}: the tool runs models of one list of layers"
            yield Flaw(f"modules {before}*{after}", "", "", rule)


def _own_name(prefix: str) -> str:
    """Return the name of a list without those of the modules around it."""
    return prefix.rstrip(".").rpartition(".")[2]


def _without_tokens(graph: Graph, modules: Modules, block: range) -> Iterator[Flaw]:
    """Yield a flaw if nothing before the layers looks up tokens, where the graph names its operators."""
    found = [extra.get(OPERATORS) for i, extra in enumerate(graph.extras.nodes) if modules.of[i] < block.stop]
    operators = [str(name) for names in found if isinstance(names, list | tuple) for name in names]
    if operators and not any(name.startswith(EMBEDDING) for name in operators):
        rule = f"calls no operator {EMBEDDING}: the tool runs language models, whose inputs are tokens"
        yield Flaw("model", "", "", rule)


def _misplaced(found: Stages, names: tuple[str, ...], block: range) -> Iterator[Flaw]:
    last = len(found.stages) - 1
    stage = {name: i for i, each in enumerate(found.stages) for name in each.modules}
    for i, name in enumerate(names):
        before, after = i < block.start, i >= block.stop
        if before and stage[name] != 0:
            rule = "what comes before the layers must be in stage 0"
        elif after and stage[name] != last:
            rule = f"what comes after the layers must be in stage {last}"
        elif i - 1 in block and i in block and stage[name] < stage[names[i - 1]]:
            rule = f"must not be before {names[i - 1]}"
        else:
            continue
        yield Flaw(f"module {name}", "", f"is in stage {stage[name]}", rule)


def _tied_layers(workload: Workload, found: Stages, modules: Modules) -> Iterator[Flaw]:
    """Yield a flaw for each parameter that a numbered layer shares with a module on another device."""
    for name, nodes in shared_parameters(workload.graph).items():
        devices = {found.stages[i].device for i in found.of[nodes].tolist()}
        if len(devices) > 1 and in_block(modules, nodes):
            rule = "only an embedding and a head may share weights from different devices"
            yield Flaw(f"parameter {name}", "", f"is on {', '.join(sorted(devices))}", rule)
