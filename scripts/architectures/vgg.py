"""VGG-16 (Simonyan and Zisserman, 2014): a chain of convolutions with three dense layers at its end."""

from architectures.builder import GraphBuilder
from architectures.classifier import CLASSES
from architectures.image import convolve, picture, pool, relu, window
from architectures.primitives import dense, dropout, loss, pointwise

SIDE = 224
BLOCKS = ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3))
HIDDEN = 4096


def vgg(graph: GraphBuilder, training: bool, batch: int) -> None:
    """Add VGG-16 for pictures of 224 x 224.

    Parameters
    ----------
    graph : GraphBuilder
        Graph to fill.
    training : bool
        Whether to have dropout and to end in the loss.
    batch : int
        Pictures per batch.
    """
    image = picture(graph, batch, SIDE)
    for block, (channels, count) in enumerate(BLOCKS, 1):
        for index in range(count):
            graph.layer(f"block{block}/convolution{index + 1}")
            image = relu(graph, convolve(graph, image, channels, window(3, 1, 1), bias=True))
        image = pool(graph, f"block{block}/pool", image, window(2, 2))
    value, width = image.operator, image.elements // batch
    for index in (1, 2):
        graph.layer(f"dense{index}")
        value = pointwise(graph, "relu", (dense(graph, "", value, batch, width, HIDDEN),), batch * HIDDEN)
        value, width = dropout(graph, value, batch * HIDDEN, training), HIDDEN
    graph.layer("classifier")
    logits = dense(graph, "", value, batch, HIDDEN, CLASSES)
    if training:
        loss(graph, (logits,), batch * CLASSES)
    else:
        pointwise(graph, "softmax", (logits,), batch * CLASSES)
