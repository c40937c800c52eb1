"""Inception-v3 (Szegedy et al., 2015), without the auxiliary classifier."""

from collections.abc import Sequence

from architectures.builder import GraphBuilder
from architectures.classifier import classify
from architectures.image import Image, Window, concatenate, picture, pool, same, unit, window

SIDE = 299
STEM = ((32, window(3, 2)), (32, window(3)), (64, same(3, 3)))
STEM_END = ((80, window(1)), (192, window(3)))
KEEP = window(3, 1, 1)
HALVE = window(3, 2)

Chain = Sequence[tuple[int, Window]]

SQUARE: Sequence[Chain] = (
    ((64, window(1)),),
    ((48, window(1)), (64, same(5, 5))),
    ((64, window(1)), (96, same(3, 3)), (96, same(3, 3))),
)
REDUCTION_A: Sequence[Chain] = (
    ((384, HALVE),),
    ((64, window(1)), (96, same(3, 3)), (96, HALVE)),
)
REDUCTION_B: Sequence[Chain] = (
    ((192, window(1)), (320, HALVE)),
    ((192, window(1)), (192, same(1, 7)), (192, same(7, 1)), (192, HALVE)),
)


def inception(graph: GraphBuilder, training: bool, batch: int) -> None:
    """Add Inception-v3 for pictures of 299 x 299.

    Parameters
    ----------
    graph : GraphBuilder
        Graph to fill.
    training : bool
        Whether to end in the loss.
    batch : int
        Pictures per batch.
    """
    image = _chain(graph, "stem", picture(graph, batch, SIDE), STEM)
    image = pool(graph, "stem/pool", image, HALVE)
    image = pool(graph, "stem/pool_end", _chain(graph, "stem_end", image, STEM_END), HALVE)
    for index, pooled in enumerate((32, 64, 64)):
        image = _block(graph, f"mixed_a{index + 1}", image, SQUARE, (KEEP, pooled))
    image = _block(graph, "reduce_a", image, REDUCTION_A, (HALVE, 0))
    for index, width in enumerate((128, 160, 160, 192)):
        image = _block(graph, f"mixed_b{index + 1}", image, _factored(width), (KEEP, 192))
    image = _block(graph, "reduce_b", image, REDUCTION_B, (HALVE, 0))
    for index in range(2):
        image = _wide_block(graph, f"mixed_c{index + 1}", image)
    classify(graph, image, training)


def _factored(width: int) -> Sequence[Chain]:
    """Return the chains of the blocks at 17 x 17, but for the pooled one."""
    row, column = same(1, 7), same(7, 1)
    return (
        ((192, window(1)),),
        ((width, window(1)), (width, row), (192, column)),
        ((width, window(1)), (width, column), (width, row), (width, column), (192, row)),
    )


def _chain(graph: GraphBuilder, name: str, image: Image, chain: Chain) -> Image:
    for index, (channels, shape) in enumerate(chain):
        image = unit(graph, f"{name}/unit{index + 1}", image, channels, shape)
    return image


def _pooled(graph: GraphBuilder, name: str, image: Image, shape: Window, channels: int) -> Image:
    """Add the pooled branch, which a 1 x 1 convolution ends if it has channels of its own."""
    pooled = pool(graph, f"{name}/pool", image, shape)
    return unit(graph, f"{name}/pool_unit", pooled, channels, window(1)) if channels else pooled


def _block(
    graph: GraphBuilder,
    name: str,
    image: Image,
    chains: Sequence[Chain],
    pooling: tuple[Window, int],
) -> Image:
    branches = [
        _chain(graph, f"{name}/branch{index + 1}", image, chain) for index, chain in enumerate(chains)
    ]
    branches.append(_pooled(graph, name, image, *pooling))
    return concatenate(graph, f"{name}/concat", branches)


def _wide_block(graph: GraphBuilder, name: str, image: Image) -> Image:
    """Add a block at 8 x 8, two of whose branches fork again."""
    branches = [unit(graph, f"{name}/branch1", image, 320, window(1))]
    stems: Sequence[Chain] = (((384, window(1)),), ((448, window(1)), (384, same(3, 3))))
    for index, chain in enumerate(stems):
        label = f"{name}/branch{index + 2}"
        stem = _chain(graph, label, image, chain)
        branches.append(unit(graph, f"{label}/row", stem, 384, same(1, 3)))
        branches.append(unit(graph, f"{label}/column", stem, 384, same(3, 1)))
    branches.append(_pooled(graph, name, image, KEEP, 192))
    return concatenate(graph, f"{name}/concat", branches)
