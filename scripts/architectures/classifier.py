"""The end of a convolutional classifier."""

from architectures.builder import GraphBuilder
from architectures.image import Image, pool, window
from architectures.primitives import dense, loss, pointwise

CLASSES = 1000


def classify(graph: GraphBuilder, image: Image, training: bool) -> None:
    """Add global average pooling, the classifier, and the loss or the probabilities.

    Parameters
    ----------
    graph : GraphBuilder
        Graph to extend.
    image : Image
        Last feature maps, square.
    training : bool
        Whether to end in the loss.
    """
    pooled = pool(graph, "average_pool", image, window(image.height))
    graph.layer("classifier")
    logits = dense(graph, "", pooled.operator, image.batch, image.channels, CLASSES)
    elements = image.batch * CLASSES
    if training:
        loss(graph, (logits,), elements)
    else:
        pointwise(graph, "softmax", (logits,), elements)
