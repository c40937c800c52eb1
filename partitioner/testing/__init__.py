"""Checks that every method must pass, for methods of this package and of others; pytest is not needed."""

from partitioner.testing.checks import check_endings, check_method, check_plans
from partitioner.testing.failures import (
    LateEnd,
    MethodFailure,
    MissingPlan,
    NotRepeatable,
    UnexpectedFailure,
    WrongBound,
    WrongInfeasibility,
    WrongPlan,
)

__all__ = [
    "LateEnd",
    "MethodFailure",
    "MissingPlan",
    "NotRepeatable",
    "UnexpectedFailure",
    "WrongBound",
    "WrongInfeasibility",
    "WrongPlan",
    "check_endings",
    "check_method",
    "check_plans",
]
