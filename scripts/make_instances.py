"""Write the committed instances, or one random instance for measuring scale."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from architectures.catalogue import WORKLOADS
from architectures.files import summary, write
from architectures.optima import write_optima
from architectures.plans import write_predictions
from architectures.profiles import PROFILES
from architectures.synthetic import (
    BLOCKS,
    BRANCHES,
    DEPTH,
    branches_instance,
    operators_instance,
)

FOLDER = Path(__file__).resolve().parent.parent / "instances"
PROFILE_FOLDER = "profiles"
NODES = 100_000
ACCELERATORS = {"branches": 6, "operators": 16}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line.

    Parameters
    ----------
    arguments : sequence of str, optional
        Arguments of the command; those of the process by default.
    """
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.list:
        _list()
    elif options.optima:
        write_optima(FOLDER)
        write_predictions(FOLDER / PROFILE_FOLDER)
    elif options.synthetic:
        if options.output is None:
            parser.error("--synthetic needs --output FILE")
        write(_synthetic(options), options.output)
    else:
        _write_all(options.only or [*WORKLOADS, *PROFILES], options.output or FOLDER)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", action="store_true", help="list the committed instances")
    parser.add_argument("--optima", action="store_true", help="solve them and write the indexes")
    parser.add_argument(
        "--only", action="append", choices=[*WORKLOADS, *PROFILES], metavar="NAME", help="write only NAME"
    )
    parser.add_argument(
        "--output", type=Path, help="folder, or file of the random instance (default: instances/)"
    )
    parser.add_argument("--synthetic", choices=list(ACCELERATORS), help="write one random instance instead")
    _add_random_options(parser)
    return parser


def _add_random_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("random instances")
    group.add_argument("--seed", type=int, default=0)
    group.add_argument("--accelerators", type=int, help="number of accelerators")
    group.add_argument("--nodes", type=int, help="operators; for branches at most so many, in whole blocks")
    group.add_argument("--branches", type=int, default=BRANCHES, help="chains per block")
    group.add_argument("--depth", type=int, default=DEPTH, help="nodes per chain")


def _list() -> None:
    descriptions = {name: workload.describe() for name, workload in WORKLOADS.items()}
    descriptions |= {name: profile.describe() for name, profile in PROFILES.items()}
    for name, description in descriptions.items():
        print(f"{name}: {description}")


def _write_all(names: Sequence[str], folder: Path) -> None:
    """Write the named instances and profiles, and print the instances' rows of the table."""
    for name in names:
        if name in PROFILES:
            PROFILES[name].write(folder / PROFILE_FOLDER / f"{name}.txt")
            continue
        instance = WORKLOADS[name].instance()
        write(instance, folder / f"{name}.json")
        print(summary(name, instance))


def _synthetic(options: argparse.Namespace) -> dict[str, Any]:
    accelerators = options.accelerators or ACCELERATORS[options.synthetic]
    if options.synthetic == "operators":
        return operators_instance(options.nodes or NODES, options.seed, accelerators)
    blocks = BLOCKS
    if options.nodes is not None:
        blocks = max(1, (options.nodes - 1) // (options.branches * options.depth + 1))
    return branches_instance(options.seed, accelerators, blocks, options.branches, options.depth)


if __name__ == "__main__":
    main()
