"""Random small spaces of layouts, held against the simulation of all their layouts and a count of memory.

Case number i has seed S + i. The search must find the layouts that simulating all finds, no bound may exceed
a simulated time, and what a layout needs of a GPU's memory, so whether it fits, must be what an oracle counts
from the sizes of the model (of zero bubble and V schedules if torch is installed, with its passes). Exit
code: 0, or 1 if something is wrong.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

sys.path.extend([str(Path(__file__).parents[1]), str(Path(__file__).parents[2])])

from tests.planning.layouts.test_search import agree
from trials.campaign import Campaign, Trial, campaign_parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    options = campaign_parser(__doc__, 2000).parse_args(arguments)
    return Campaign(options.cases).run(trials(options.seed, options.cases))


def trials(seed: int, cases: int) -> Iterator[Trial]:
    """Yield the end of every case."""
    for number in range(seed, seed + cases):
        shown = f"python scripts/trials/layout_spaces.py --cases 1 --seed {number}"
        try:
            outcome = "layouts" if agree(number) else "none fits"
        except AssertionError as error:
            yield Trial("spaces", "wrong", str(error).splitlines()[0], shown)
        else:
            yield Trial("spaces", outcome)


if __name__ == "__main__":
    sys.exit(main())
