"""Write the tables of options in ``docs/options.md`` from the records of the options.

With ``--check`` the page is not written; the exit code is 1 if its tables are not those of the records.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from partitioner.cli.option_arguments import argument_of
from partitioner.planning.option import SECTIONS, Option
from partitioner.planning.option_records import OPTIONS

PAGE = Path(__file__).resolve().parent.parent / "docs" / "options.md"
BEGIN = "<!-- tables of options, written by scripts/options_page.py -->"
END = "<!-- end of the tables of options -->"
HEAD = "| option | default | what it does | what it may be | only for |\n|---|---|---|---|---|"
SETS = {  # of methods, which the table names once
    "exact searches": (
        "dp, dpl, pipeline, virtual_stages, simulated, pipedream_path, ip, max_load, latency_ip, latency_dp"
    ),
    "placers": (
        "exact, portfolio, heft, etf, m-topo, m-etf, m-sct, dpos, "
        "dfs-topo, cpd-topo, order-place, celeritas, list"
    ),
}
OF_TRAINING = "graphs for training whose memory is given by parts"
SHORTER = {  # rules that many options have, in the words of the table
    r"an integer of at least (\d+) and at most 1(,000){5}": r"from \1",
    r"an integer of at least (\d+) and at most ([\d,]+)": r"\1 to \2",
    r"an integer of at least (\d+)": r"from \1",
    r"an integer from": "from",
    r"a positive number( of seconds)?, at most 1,000,000,000": "above 0",
    r"(a number from 1) to 1,000,000,000": r"\1",
    r"True or False": "",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="options_page", description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare the page instead of writing it")
    parser.add_argument("--page", type=Path, default=PAGE, metavar="FILE", help="the page (docs/options.md)")
    options = parser.parse_args(arguments)
    text = options.page.read_text(encoding="utf-8")
    made = with_tables(text)
    if options.check:
        return int(made != text)
    options.page.write_text(made, encoding="utf-8")
    return 0


def with_tables(page: str) -> str:
    """Return the page with the tables of the records between its two marks."""
    before, rest = page.split(BEGIN)
    return f"{before}{BEGIN}\n{tables()}{END}{rest.split(END)[1]}"


def tables() -> str:
    """Return a table for every section of options, and the methods that its last column means."""
    known = SETS | {"training graphs": OF_TRAINING}
    sets = "; ".join(f"*{name}* are {names}" for name, names in known.items())
    rows = "".join(f"\n### {title[0].upper()}{title[1:]}\n\n{table(title)}\n" for title in SECTIONS)
    return f"\nIn the last column {sets}.\n{rows}\n"


def table(title: str) -> str:
    """Return the options of a section as a table."""
    return "\n".join([HEAD, *(row(option) for option in OPTIONS.values() if option.section == title)])


def row(option: Option) -> str:
    """Return the row of an option; its name on the command line only if that is another one."""
    typed = "" if option.rule.kind is object else argument_of(option).name
    other = f" `{typed}`" if typed not in ("", f"--{option.name.replace('_', '-')}") else ""
    words = "" if listed_in(option.help, option.rule.names) else option.rule.words
    for rule, shorter in SHORTER.items():
        words = re.sub(f"^{rule}$" if not shorter else rule, shorter, words)
    cells = (f"`{option.name}`{other}", default(option), option.help, words, effect(option))
    return f"| {' | '.join(cells)} |"


def default(option: Option) -> str:
    """Return the default as Python writes it and what it means; of None and of objects only the latter."""
    plain = not option.meaning if option.default is None else option.rule.kind is not object
    return ": ".join(part for part in (f"`{option.default!r}`" if plain else "", option.meaning) if part)


def effect(option: Option) -> str:
    """Return where an option has an effect, and a mark if it is refused elsewhere; nothing for everywhere."""
    if option.effect is None:
        where = option.where.removeprefix("everywhere; ").replace("; elsewhere refused", " (refused)")
        return where.replace(OF_TRAINING, "training graphs")
    where = option.effect.where.removeprefix("method ")
    for name, names in SETS.items():
        where = where.replace(names, name)
    return where + (" (refused)" if option.effect.refused else "")


def listed_in(text: str, names: Sequence[str]) -> bool:
    """Whether a text has all of some names, of which there is at least one."""
    return bool(names) and all(re.search(rf"\b{re.escape(name)}\b", text) for name in names)


if __name__ == "__main__":
    sys.exit(main())
