"""Residual networks with bottleneck blocks (He et al., 2015)."""

from architectures.builder import GraphBuilder
from architectures.classifier import classify
from architectures.image import Image, like, picture, pool, relu, unit, window
from architectures.primitives import linear

SIDE = 224
BLOCKS_50 = (3, 4, 6, 3)
EXPANSION = 4


def resnet(graph: GraphBuilder, training: bool, batch: int, blocks: tuple[int, ...]) -> None:
    """Add a residual network for pictures of 224 x 224.

    Parameters
    ----------
    graph : GraphBuilder
        Graph to fill.
    training : bool
        Whether to end in the loss.
    batch : int
        Pictures per batch.
    blocks : tuple of int
        Bottleneck blocks per stage.
    """
    image = unit(graph, "stem", picture(graph, batch, SIDE), 64, window(7, 2, 3))
    image = pool(graph, "stem_pool", image, window(3, 2, 1))
    for stage, count in enumerate(blocks):
        for block in range(count):
            stride = 2 if stage > 0 and block == 0 else 1
            name = f"stage{stage + 1}/block{block + 1}"
            image = _bottleneck(graph, name, image, 64 * 2**stage, stride)
    classify(graph, image, training)


def _bottleneck(graph: GraphBuilder, name: str, image: Image, width: int, stride: int) -> Image:
    inner = unit(graph, f"{name}/reduce", image, width, window(1))
    inner = unit(graph, f"{name}/spatial", inner, width, window(3, stride, 1))
    inner = unit(graph, f"{name}/expand", inner, EXPANSION * width, window(1), active=False)
    skip = image
    if image.channels != inner.channels:
        skip = unit(graph, f"{name}/project", image, inner.channels, window(1, stride), active=False)
    graph.layer(f"{name}/join")
    total = linear(graph, "add", (inner.operator, skip.operator), inner.elements)
    return relu(graph, like(inner, total))
