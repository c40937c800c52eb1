"""Plans as arguments of llama.cpp."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from partitioner.exports.blocks import blocks_of, predicting
from partitioner.exports.device_map import HOST, numbers
from partitioner.exports.target import Target
from partitioner.results.plan import Plan
from partitioner.workload.workload import Workload

BY_NAME = "--override-tensor"
EXPERTS = r"ffn_(up|down|gate|gate_up)_(ch|)exps"  # names of their tensors, as llama.cpp's --cpu-moe has them
LLAMA_CPP = Target("llama.cpp", ties=True, blocks=True, tokens=True)


def llama_cpp(plan: Plan, workload: Workload) -> str:
    """Return the arguments that put each layer on its device, in a line.

    llama.cpp keeps the embedding on the CPU, counts layers for multi-token prediction and the head as further
    layers, and gives the last ``--n-gpu-layers`` of all to its GPUs in order, to each as many as
    ``--tensor-split`` says. That is the rule since December 2025 (its pull request 18148, head first). Older
    releases leave the head on the CPU unless all layers are on GPUs, so that they take a layer more from the
    CPU; where no layer is on the CPU, both rules are one. If the devices stand in another order,
    ``--override-tensor`` puts the weights of each layer on its device; the cache of keys and values then
    stays where llama.cpp puts it.

    Raises
    ------
    ExportError
        If the layers are not numbered, or what comes before and after them is not in the first and the last
        stage.
    """
    found = blocks_of(workload, plan, LLAMA_CPP)
    number = numbers(workload.devices)
    devices = [number[stage.device] for stage in found.stages.stages]
    slots = [device for device, count in zip(devices, found.counts, strict=True) for _ in range(count)]
    slots += [devices[-1]] * (len(predicting(found.head)) + 1)  # the last one is that of the head
    return arguments(slots)


def arguments(slots: list[int | str], experts: Sequence[int] = ()) -> str:
    """Return the arguments in a line.

    Parameters
    ----------
    slots
        The GPU of each layer, or :data:`HOST`; the last one is that of the head.
    experts
        The layers whose experts alone are on the CPU: the first ones by ``--n-cpu-moe``, others by name.

    Examples
    --------
    >>> print(arguments([0, 0, 0], experts=[0]).strip())
    --n-gpu-layers 3 --split-mode layer --tensor-split 3 --n-cpu-moe 1
    """
    own = [slot for slot in slots if isinstance(slot, int)]
    on_host = len(slots) - len(own)
    in_order = own == sorted(own) and slots[:on_host] == [HOST] * on_host
    first = list(experts) == list(range(on_host, on_host + len(experts)))
    found = _shares(own) if in_order else _patterns(slots)
    if in_order and first and experts:
        found += ["--n-cpu-moe", str(on_host + len(experts))]
    elif experts:
        names = rf"blk\.({'|'.join(map(str, experts))})\.{EXPERTS}=CPU"
        own_names = found[-1:] if found[-2:-1] == [BY_NAME] else []
        found = [*(found[:-2] if own_names else found), BY_NAME, ",".join([names, *own_names])]
    return shlex.join(found) + "\n"


def _shares(own: list[int]) -> list[str]:
    """Return the arguments for GPUs that have consecutive layers, in order."""
    if not own:
        return ["--n-gpu-layers", "0"]
    shares = ",".join(str(own.count(device)) for device in range(max(own) + 1))
    return ["--n-gpu-layers", str(len(own)), "--split-mode", "layer", "--tensor-split", shares]


def _patterns(slots: list[int | str]) -> list[str]:
    """Return the arguments for any devices; the last slot is that of the head."""
    found = []
    for device in dict.fromkeys(slots):
        layers = [str(i) for i, slot in enumerate(slots[:-1]) if slot == device]
        names = [rf"blk\.({'|'.join(layers)})\."] * bool(layers) + ["^output"] * (slots[-1] == device)
        found += [f"{name}={'CPU' if device == HOST else f'CUDA{device}'}" for name in names]
    return ["--n-gpu-layers", str(len(slots)), BY_NAME, ",".join(found)]
