"""What a consumer of plans can express, and the error about a plan that it cannot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from partitioner.base.errors import SHOWN_FLAWS, Flaw, PartitionerError

ONE, LOOP, VEE, ANY_RANKS = "one", "loop", "loop or vee", "any"


@dataclass(frozen=True)
class Target:
    """What the plans of a consumer may look like, which consist of whole modules unless `anywhere`.

    Parameters
    ----------
    name
        The name of the writer.
    line
        Whether a stage sends tensors to the next stage only.
    ranks
        Which stages a device may have: ``"one"``: one stage; ``"loop"``: stage k is on device k mod p;
        ``"loop or vee"``: that, or of 2p stages k and 2p - 1 - k on device k; ``"any"``: any stages.
    ties
        Whether stages may share parameters.
    own_memory
        Whether all stages must be on devices with a memory of their own.
    one_kind
        Whether all stages must be on one kind of device, which has its own memory.
    traced
        Whether the tool traces the model and cuts the program: stages have consecutive modules. In graphs
        without backward nodes tensors may skip stages, and stages may share parameters, each with a copy.
    blocks
        Whether the model is a line of numbered layers between two ends, neither of which may be cut.
    tokens
        Whether the model must be a language model, whose inputs are tokens.
    anywhere
        Whether stages may be cut inside a module, between any two nodes.
    ways
        Whether the file names the way in which a module runs, if it is another than its own figures.

    Examples
    --------
    >>> Target("vllm", line=True, ranks=ONE, ties=True).one_kind
    False
    """

    name: str
    line: bool = False
    ranks: str = ANY_RANKS
    ties: bool = False
    own_memory: bool = False
    one_kind: bool = False
    traced: bool = False
    blocks: bool = False
    tokens: bool = False
    anywhere: bool = False
    ways: bool = False

    def refuse(self, flaws: Sequence[Flaw], any_plan: bool = False) -> None:
        """Raise if there are flaws; `any_plan` says that every plan of the workload has them.

        Raises
        ------
        ExportError
            Naming each module or device and the rule that it breaks.
        """
        if flaws:
            raise ExportError(self.name, flaws, "" if any_plan else self.advice)

    @property
    def free(self) -> bool:
        """Whether it runs any map of modules to devices, so that chains would only be dearer."""
        return not (self.line or self.blocks or self.anywhere)

    @property
    def advice(self) -> str:
        """The calls that find a plan without flaws."""
        split = ", split='chain'" if self.line else ", split='free'" if self.free else ""
        call = f"solve(...{split}, constraints=partitioner.expressible({self.name!r}))"
        command = f"partitioner solve --expressible {self.name}"
        return f"{call}, or {command}, finds the best plan that can be expressed"


class ExportError(PartitionerError):
    """A consumer cannot express a plan; every rule that the plan breaks is listed.

    Parameters
    ----------
    target
        The name of the writer.
    flaws
        The broken rules.
    advice
        How to find a plan that it can express; empty if there is none.
    """

    def __init__(self, target: str, flaws: Sequence[Flaw], advice: str = "") -> None:
        super().__init__(target, tuple(flaws), advice)
        self.target, self.flaws, self.advice = target, tuple(flaws), advice

    def __str__(self) -> str:
        lines = [f"{self.target}: {flaw}" for flaw in self.flaws[:SHOWN_FLAWS]]
        hidden = len(self.flaws) - SHOWN_FLAWS
        lines += [f"{self.target}: ... and {hidden} more"] if hidden > 0 else []
        return "\n".join([*lines, *filter(None, [self.advice])])
