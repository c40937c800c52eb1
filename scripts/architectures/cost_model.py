"""Analytic cost model: how long an operator takes and how many bytes it occupies.

Time of one operator on one processor is the roofline bound plus a launch overhead::

    time = max(flops / (peak * efficiency), traffic / memory_bandwidth) + kernels * overhead

``efficiency`` belongs to the kind of operator (dense products reach a larger share of the
matrix-unit peak than convolutions do; everything else runs on the vector units). ``traffic``
is every operand read once and every result written once, unless an operator says otherwise.
The backward operator takes ``Kind.backward`` times the forward one: twice for products and
convolutions (a gradient for each operand), once for everything else.

Memory: an inference operator (or layer) holds its parameters and its output, since the
buffers inside a layer are used again. A training operator holds 16 bytes per parameter
altogether (weight, gradient, and the 32-bit Adam state), its stored output and, for the
backward half, the gradients that it produces.

Peaks, bandwidths and capacities are those of the vendors' data sheets; the host link is the
sustained rate of its PCI Express generation.
"""

from dataclasses import dataclass

MS_PER_SECOND = 1e3
GIB = 2.0**30
TRAINING_BYTES_PER_PARAMETER = 16.0
LINK_LATENCY_MS = 0.01


@dataclass(frozen=True)
class Processor:
    """Something that executes operators; rates per second, overhead in ms per kernel."""

    name: str
    flops_per_second: float
    memory_bandwidth: float
    kernel_overhead: float


@dataclass(frozen=True)
class Accelerator(Processor):
    """A processor with its own memory (bytes) behind a host link (bytes per second)."""

    memory: float
    link_bandwidth: float
    element_bytes: int


@dataclass(frozen=True)
class Kind:
    """How operators of one sort behave, forward and backward.

    Attributes
    ----------
    efficiency : float
        Share of the processor's peak that the arithmetic reaches.
    backward : float
        Time of the backward operator in units of the forward one.
    saves_inputs, saves_output : bool
        Whether the backward operator reads the forward inputs or output again.
    differentiable : bool
        Whether a gradient passes through.
    free : bool
        Whether it takes no time and no memory (a view of its input).
    """

    efficiency: float
    backward: float = 1.0
    saves_inputs: bool = False
    saves_output: bool = False
    differentiable: bool = True
    free: bool = False


MATMUL = Kind(0.6, backward=2.0, saves_inputs=True)
CONVOLUTION = Kind(0.5, backward=2.0, saves_inputs=True)
RECURRENT = Kind(0.3, backward=2.0, saves_inputs=True, saves_output=True)
NORMALISATION = Kind(0.1, saves_inputs=True)
PRODUCT = Kind(0.1, saves_inputs=True)
ACTIVATION = Kind(0.1, saves_output=True)
LINEAR = Kind(0.1)
LOOKUP = Kind(0.1, saves_inputs=True)
DISCRETE = Kind(0.1, differentiable=False)
VIEW = Kind(1.0, free=True)
INPUT = Kind(1.0, differentiable=False, free=True)

P100_16GB = Accelerator("P100-16GB fp32", 10.6e12, 732e9, 0.008, 16 * GIB, 12e9, 4)
V100_16GB = Accelerator("V100-16GB fp16", 125e12, 900e9, 0.007, 16 * GIB, 12e9, 2)
V100_32GB = Accelerator("V100-32GB fp16", 125e12, 900e9, 0.007, 32 * GIB, 12e9, 2)
A100_40GB = Accelerator("A100-40GB bf16", 312e12, 1555e9, 0.005, 40 * GIB, 25e9, 2)
A100_80GB = Accelerator("A100-80GB bf16", 312e12, 2039e9, 0.005, 80 * GIB, 25e9, 2)
TPU_V3 = Accelerator("TPU-v3-32GB bf16", 123e12, 900e9, 0.003, 32 * GIB, 12e9, 2)
HOST = Processor("64-core EPYC 7742 socket", 4.6e12, 204.8e9, 0.003)


def time_ms(processor: Processor, kind: Kind, flops: float, traffic: float, kernels: int = 1) -> float:
    """Return the time in ms of one operator.

    Parameters
    ----------
    processor : Processor
        What executes it.
    kind : Kind
        Its sort, for the efficiency.
    flops : float
        Floating-point operations.
    traffic : float
        Bytes read and written.
    kernels : int, optional
        Number of kernels launched one after another.

    Returns
    -------
    float
        Time in ms; 0 for free kinds.
    """
    if kind.free:
        return 0.0
    compute = flops / (processor.flops_per_second * kind.efficiency)
    transfer = traffic / processor.memory_bandwidth
    return MS_PER_SECOND * max(compute, transfer) + kernels * processor.kernel_overhead


def transfer_ms(accelerator: Accelerator, size: float) -> float:
    """Return the time in ms to move ``size`` bytes between a device and host memory."""
    if size == 0:
        return 0.0
    return MS_PER_SECOND * size / accelerator.link_bandwidth + LINK_LATENCY_MS
