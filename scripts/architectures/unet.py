"""U-Net (Ronneberger et al., 2015): valid convolutions and cropped skip connections."""

from architectures.builder import GraphBuilder
from architectures.cost_model import CONVOLUTION, LINEAR
from architectures.image import Image, concatenate, convolve, like, picture, pool, relu, window
from architectures.primitives import dropout, loss, pointwise

SIDE = 572
LEVELS = (64, 128, 256, 512)
BOTTOM = 1024
CLASSES = 2


def unet(graph: GraphBuilder, training: bool, batch: int) -> None:
    """Add the original U-Net for pictures of 572 x 572 with one channel.

    Parameters
    ----------
    graph : GraphBuilder
        Graph to fill.
    training : bool
        Whether to have dropout and to end in the loss.
    batch : int
        Pictures per batch.
    """
    image = picture(graph, batch, SIDE, channels=1)
    skips = []
    for level, channels in enumerate(LEVELS):
        image = _double(graph, f"down{level + 1}", image, channels)
        skips.append(image)
        image = pool(graph, f"down{level + 1}/pool", image, window(2, 2))
    image = _double(graph, "bottom", image, BOTTOM)
    image = like(image, dropout(graph, image.operator, image.elements, training))
    for level in reversed(range(len(LEVELS))):
        name = f"up{level + 1}"
        raised = _upsample(graph, f"{name}/upsample", image, LEVELS[level])
        cropped = _crop(graph, f"{name}/crop", skips[level], raised)
        joined = concatenate(graph, f"{name}/concat", (cropped, raised))
        image = _double(graph, name, joined, LEVELS[level])
    _head(graph, image, training)


def _double(graph: GraphBuilder, name: str, image: Image, channels: int) -> Image:
    for index in (1, 2):
        graph.layer(f"{name}/unit{index}")
        image = relu(graph, convolve(graph, image, channels, window(3), bias=True))
    return image


def _upsample(graph: GraphBuilder, name: str, image: Image, channels: int) -> Image:
    """Add a transposed convolution of 2 x 2 with stride 2."""
    graph.layer(name)
    weights = 4 * image.channels * channels
    height, width = 2 * image.height, 2 * image.width
    elements = image.batch * channels * height * width
    flops = 2 * image.batch * image.height * image.width * weights
    operator = graph.add(
        "convolution", CONVOLUTION, (image.operator,), elements, flops=flops, parameters=weights
    )
    operator = graph.add("bias", LINEAR, (operator,), elements, parameters=channels)
    return Image(operator, image.batch, channels, height, width)


def _crop(graph: GraphBuilder, name: str, image: Image, target: Image) -> Image:
    graph.layer(name)
    elements = image.batch * image.channels * target.height * target.width
    operator = graph.add("crop", LINEAR, (image.operator,), elements, traffic=2 * elements)
    return Image(operator, image.batch, image.channels, target.height, target.width)


def _head(graph: GraphBuilder, image: Image, training: bool) -> None:
    graph.layer("head")
    logits = convolve(graph, image, CLASSES, window(1), bias=True)
    if training:
        loss(graph, (logits.operator,), logits.elements)
    else:
        pointwise(graph, "softmax", (logits.operator,), logits.elements)
