"""Dimensions along which an operation may be split."""

from __future__ import annotations

from dataclasses import dataclass

from partitioner.base.errors import Flaw, WorkloadError, shown


@dataclass(frozen=True)
class Dimension:
    """A dimension of an operation's tensors, and the shares of its n sub-operations (FastT, Section 5.2).

    Parameters
    ----------
    name
        Part of the sub-operations' ids; not empty.
    divides_input
        Whether each gets its share of the inputs; else all of them.
    divides_parameters
        Whether each holds its share of the parameters; else a copy of them.
    divides_output
        Whether each makes its share of the output; else a partial result of full size.

    Raises
    ------
    WorkloadError
        If a field is not of its type.

    Examples
    --------
    >>> Dimension("channel", divides_input=False, divides_parameters=True).divides_output
    True
    """

    name: str
    divides_input: bool = True
    divides_parameters: bool = False
    divides_output: bool = True

    def __post_init__(self) -> None:
        flaws = [
            Flaw("dimension", name, shown(value), "must be True or False")
            for name, value in vars(self).items()
            if name != "name" and not isinstance(value, bool)
        ]
        if not isinstance(self.name, str) or not self.name:
            flaws.append(Flaw("dimension", "name", shown(self.name), "must be a text that is not empty"))
        if flaws:
            raise WorkloadError(flaws)
