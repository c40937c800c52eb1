"""Feature maps and the operators of convolutional networks."""

from collections.abc import Sequence
from dataclasses import dataclass

from architectures.builder import GraphBuilder
from architectures.cost_model import CONVOLUTION, LINEAR
from architectures.primitives import linear, normalise, pointwise, product, source


@dataclass(frozen=True)
class Image:
    """A batch of feature maps and the operator that produces it."""

    operator: int
    batch: int
    channels: int
    height: int
    width: int

    @property
    def elements(self) -> int:
        """Number of elements of the whole batch."""
        return self.batch * self.channels * self.height * self.width


@dataclass(frozen=True)
class Window:
    """A convolution or pooling window; one number per axis, rows first."""

    size: tuple[int, int]
    stride: int = 1
    padding: tuple[int, int] = (0, 0)

    def slide(self, image: Image) -> tuple[int, int]:
        """Return the height and width of the result."""
        height = (image.height + 2 * self.padding[0] - self.size[0]) // self.stride + 1
        width = (image.width + 2 * self.padding[1] - self.size[1]) // self.stride + 1
        return height, width


def window(size: int, stride: int = 1, padding: int = 0) -> Window:
    """Return a square window."""
    return Window((size, size), stride, (padding, padding))


def same(rows: int, columns: int) -> Window:
    """Return a window of stride 1 that keeps the height and width."""
    return Window((rows, columns), 1, (rows // 2, columns // 2))


def picture(graph: GraphBuilder, batch: int, side: int, channels: int = 3) -> Image:
    """Add a batch of square input pictures."""
    elements = batch * channels * side * side
    return Image(source(graph, "pictures", elements), batch, channels, side, side)


def convolve(graph: GraphBuilder, image: Image, channels: int, shape: Window, bias: bool = False) -> Image:
    """Add a convolution to the current layer, with a bias if there is no normalisation."""
    height, width = shape.slide(image)
    weights = image.channels * channels * shape.size[0] * shape.size[1]
    elements = image.batch * channels * height * width
    flops = 2 * image.batch * height * width * weights
    operator = graph.add(
        "convolution", CONVOLUTION, (image.operator,), elements, flops=flops, parameters=weights
    )
    if bias:
        operator = graph.add("bias", LINEAR, (operator,), elements, parameters=channels)
    return Image(operator, image.batch, channels, height, width)


def batch_norm(graph: GraphBuilder, image: Image) -> Image:
    """Add a batch normalisation."""
    return like(
        image,
        normalise(graph, "batch_norm", image.operator, image.elements, 2 * image.channels),
    )


def relu(graph: GraphBuilder, image: Image) -> Image:
    """Add a rectifier."""
    return like(image, pointwise(graph, "relu", (image.operator,), image.elements))


def like(image: Image, operator: int) -> Image:
    """Return the output of ``operator``, of the same shape as ``image``."""
    return Image(operator, image.batch, image.channels, image.height, image.width)


def unit(
    graph: GraphBuilder, name: str, image: Image, channels: int, shape: Window, active: bool = True
) -> Image:
    """Add a layer of convolution, batch normalisation and, if ``active``, rectifier."""
    graph.layer(name)
    normed = batch_norm(graph, convolve(graph, image, channels, shape))
    return relu(graph, normed) if active else normed


def pool(graph: GraphBuilder, name: str, image: Image, shape: Window) -> Image:
    """Add a layer of maximum or average pooling."""
    graph.layer(name)
    height, width = shape.slide(image)
    elements = image.batch * image.channels * height * width
    operator = product(graph, "pool", (image.operator,), elements)
    return Image(operator, image.batch, image.channels, height, width)


def concatenate(graph: GraphBuilder, name: str, images: Sequence[Image]) -> Image:
    """Add a layer that joins feature maps along the channels."""
    graph.layer(name)
    channels = sum(image.channels for image in images)
    elements = sum(image.elements for image in images)
    operator = linear(graph, "concat", [image.operator for image in images], elements)
    first = images[0]
    return Image(operator, first.batch, channels, first.height, first.width)
