"""What torch raises while it captures a model, as one sentence that names the module and the remedy."""

from __future__ import annotations

import contextlib
import io
import logging
import re
import warnings
from collections.abc import Iterator
from typing import Any

from partitioner.base.errors import Flaw, PartitionerError, WorkloadError
from partitioner.integrations.torch.graphs.operations import module_of
from partitioner.integrations.torch.graphs.scored import Scored, path_in_model

VALUES = (
    "depends on the values of tensors{where}: write it with torch.where, or make graphs of the parts "
    "before and after it"
)
RETURNED = (
    "returns {kind}, which torch does not know how to capture: return tensors in tuples, lists and dicts, or "
    "register it with torch.utils._pytree.register_pytree_node"
)
QUANTIZED = (
    "holds weights that dynamic quantization packed, which torch does not capture: make the graph of the "
    "model before quantize_dynamic, and give measured times"
)
VMAP = (
    "calls torch.vmap, whose operators run together: write them over the dimension of the batch, or as a loop"
)
AUTOCAST = (
    "the operators of {module} under torch.autocast are one operator, which is not cut: convert the model, "
    "such as by model.to(torch.bfloat16), to have them apart"
)
OTHER = "cannot be captured by torch.export: {what}"
CODE = re.compile(r'File "[^"]*?([^"/]+)", line (\d+), in \S+')


@contextlib.contextmanager
def in_our_words(model: Any) -> Iterator[None]:
    """Let torch capture a model silently, and raise what it raises as a `WorkloadError`.

    Parameters
    ----------
    model
        The model, whose modules are named.

    Raises
    ------
    WorkloadError
        Naming the innermost module of the model that was running, and the remedy.
    """
    before = logging.root.manager.disable
    try:
        logging.disable(logging.CRITICAL)
        with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    except PartitionerError:
        raise
    except Exception as error:  # torch raises many types
        raise WorkloadError([Flaw(_running(model, error), "", "", _rule(error))]) from error
    finally:
        logging.disable(before)


def _running(model: Any, error: BaseException) -> str:
    """Return the innermost module of the model whose forward pass raised an error."""
    whole = model.model if isinstance(model, Scored) else model
    paths = {id(module): f"module {path}" for path, module in whole.named_modules() if path}
    paths |= {id(model): "loss"} | {id(whole): f"model {type(whole).__name__}"}
    found, trace = paths[id(whole)], error.__traceback__
    while trace is not None:
        found = paths.get(id(trace.tb_frame.f_locals.get("self")), found)
        trace = trace.tb_next
    return found


def _rule(error: Exception) -> str:
    text = str(error)
    kind = re.search(r"Found (<class '.*?'>) in output", text)
    if kind:
        return RETURNED.format(kind=kind[1])
    if "PackedParams" in text:
        return QUANTIZED
    if "ata-dependent" in text or type(error).__name__ in ("DataDependentOutputException", "UserError"):
        lines = [f"{file}:{line}" for file, line in CODE.findall(text)]
        return VALUES.format(where=f" in {lines[-1]}" if lines else "")
    if "DynamicOutputShape" in type(error).__name__:
        return VALUES.format(where="")
    first = text.strip().splitlines()[0] if text.strip() else ""
    return OTHER.format(what=f"{type(error).__name__}: {first}".rstrip(": "))


def require_no_vmap(model: Any, graph: Any) -> None:
    """Raise if a program calls torch.vmap, whose operators cannot be told apart.

    Raises
    ------
    WorkloadError
        Naming the module.
    """
    for node in graph.nodes:
        if getattr(node.target, "__name__", "") == "_vmap_increment_nesting":
            raise WorkloadError([Flaw(_module(model, node), "", "", VMAP)])


def autocast_notes(model: Any, graph: Any) -> list[str]:
    """Return a note on each module that computes under torch.autocast, which makes one operator of it."""
    found = (_module(model, node) for node in graph.nodes if str(node.target) == "wrap_with_autocast")
    return [AUTOCAST.format(module=module) for module in dict.fromkeys(found)]


def _module(model: Any, node: Any) -> str:
    """Return the innermost module that calls a node."""
    path = module_of(node)
    path = path_in_model(path) if isinstance(model, Scored) else path
    return f"module {path}" if path else "the model"
