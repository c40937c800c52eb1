"""The digest of the data of a graph."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

from numpy.typing import NDArray


def digest_of(
    names: object, arrays: Iterable[NDArray[Any]], parts: NDArray[Any], cache: NDArray[Any], ways: str
) -> str:
    """Return the SHA-256 of all data of a graph that a solver reads, the same on every machine.

    Parameters
    ----------
    names
        What the graph names: kinds of devices and nodes.
    arrays
        The columns that every graph has.
    parts, cache, ways
        Parts of memory, caches and the text of alternatives, which count only if the graph has them.
    """
    data = [repr(names).encode(), *(array.tobytes() for array in arrays)]
    data += [parts.tobytes()] if parts.any() else []
    data += [b"cache", cache.tobytes()] if cache.any() else []
    data += [ways.encode()] if ways else []
    return hashlib.sha256(b"|".join(data)).hexdigest()
