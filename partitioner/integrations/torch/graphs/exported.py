"""The exported program of a model, and what it does not say of the model."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from typing import Any

import torch

from partitioner.base.errors import Flaw, OptionError, WorkloadError, shown
from partitioner.integrations.torch.graphs.export_errors import in_our_words, require_no_vmap
from partitioner.integrations.torch.graphs.values import require_shapes

CACHE = "use_cache"
FRAME = re.compile(r'File "(.*?)", line (\d+)')
RULE = (
    "has a backward pass of its own, which an exported program forgets: compute with torch's functions, and "
    "give torch.utils.checkpoint use_reentrant=False"
)


def exported_program(model: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], gradients: bool) -> Any:
    """Return the exported program of a model; nothing of it is run.

    Parameters
    ----------
    model
        The model.
    args, kwargs
        The arguments of a call of it.
    gradients
        Whether gradients will be computed by the program.

    Raises
    ------
    WorkloadError
        If torch cannot capture the model, naming the module, or a shape depends on values; or, with
        `gradients`, if the model calls a ``torch.autograd.Function``: torch exports what its forward pass
        does and forgets its backward pass.
    OptionError
        If the arguments ask for a cache of keys and values.
    """
    _count_devices_of_autograd()
    with _without_cache(model, kwargs), in_our_words(model):
        exported = torch.export.export(model, args, dict(kwargs), strict=False)
    require_no_vmap(model, exported.graph)
    require_shapes(exported.graph)
    if gradients and (names := functions_called(exported.graph)):
        raise WorkloadError([Flaw("model", "", f"torch.autograd.Function {name}", RULE) for name in names])
    return exported


@contextlib.contextmanager
def _without_cache(model: Any, kwargs: Mapping[str, Any]) -> Iterator[None]:
    """Let a model return no cache: its configs say so inside of the context, and what they said after it.

    Parameters
    ----------
    model
        A ``torch.nn.Module``; its modules have a field ``config`` if they are of transformers.
    kwargs
        The arguments of a call of it by name.

    Raises
    ------
    OptionError
        If the arguments ask for the cache.
    """
    if kwargs.get(CACHE):
        rule = "must be left out or False: the cache of keys and values is no tensor and cannot be captured"
        raise OptionError(f"kwargs: {CACHE} = {shown(kwargs[CACHE])}: {rule}")
    configs = {id(one): one for one in (getattr(each, "config", None) for each in model.modules())}
    changed = [one for one in configs.values() if getattr(one, CACHE, None) is True]
    for config in changed:
        setattr(config, CACHE, False)
    try:
        yield
    finally:
        for config in changed:
            setattr(config, CACHE, True)


def _count_devices_of_autograd() -> None:
    """Run a backward pass, at the first of which autograd starts a thread for each device that there is.

    ``torch.export`` of torch 2.15 makes one known also where there is none but the CPU. With a thread for it,
    no forked process could run a backward pass.
    """
    torch.ones((), requires_grad=True).clone().backward()


def functions_called(graph: Any) -> list[str]:
    """Return the names of the subclasses of ``torch.autograd.Function`` whose forward passes made nodes."""
    lines = {(file, line) for node in _every(graph) for file, line in _frames(node)}
    found = (
        one.__qualname__
        for one in _subclasses(torch.autograd.Function)
        if (code := getattr(one.forward, "__code__", None))
        and any((code.co_filename, line) in lines for _, _, line in code.co_lines() if line)
    )
    return sorted(set(found))


def _frames(node: Any) -> list[tuple[str, int]]:
    """Return the files and lines of the calls that led to a node."""
    return [(file, int(line)) for file, line in FRAME.findall(node.meta.get("stack_trace") or "")]


def _every(graph: Any) -> Iterator[Any]:
    """Yield the nodes of a graph and of the graphs that it calls."""
    for node in graph.nodes:
        yield node
        if node.op == "get_attr":
            inner: Any = getattr(graph.owning_module, str(node.target), None)
            yield from _every(inner.graph) if hasattr(inner, "graph") else ()


def _subclasses(kind: Any) -> Iterator[Any]:
    for one in kind.__subclasses__():
        yield one
        yield from _subclasses(one)
