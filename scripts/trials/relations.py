"""Relations that proven optima must obey when a workload is changed in known ways, by the thousand.

A case is a random workload of 3 to 7 nodes. Another unit of time, another order of its nodes, a node without
time and a repeated edge leave its optimum as it is; more memory, one more device, an edge less, a faster and
a smaller node make it no larger. Case number i has seed
S + i. Exit code: 0, or 1 if a relation does not hold.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from unittest.mock import patch

sys.path.extend([str(Path(__file__).parents[1]), str(Path(__file__).parents[2])])

from partitioner.methods.ip import solve as ip
from tests.methods.inline_worker_pool import InlineWorkerPool
from tests.relations import QUICK, SOLVED, compared
from trials.campaign import Campaign, Trial, campaign_parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    parser = campaign_parser(__doc__, 1000)
    names = [f"{objective}-{split}" for objective, split in (*QUICK, *SOLVED)]
    parser.add_argument("--only", choices=names, help="an objective and a split (all; --cases are of each)")
    options = parser.parse_args(arguments)
    wanted = names if options.only is None else [options.only]
    campaign = Campaign(options.cases * len(wanted))
    with patch.object(ip, "WorkerPool", InlineWorkerPool):
        return campaign.run(
            trial for name in wanted for trial in islice(trials(name, options.seed), options.cases)
        )


def trials(name: str, seed: int) -> Iterator[Trial]:
    """One trial a relation, case after case."""
    objective, _, split = name.partition("-")
    while True:
        for what, wrong in compared(seed, objective, split):
            command = f"python scripts/trials/relations.py --only {name} --cases 10 --seed {seed}"
            yield Trial(f"{objective}, {split}", what, wrong and f"{what}: {wrong}", command)
        seed += 1


if __name__ == "__main__":
    sys.exit(main())
