"""Arguments that several commands take: files, devices, constraints, transfers, profiles, output."""

from __future__ import annotations

from partitioner.cli.argument import (
    Argument,
    Section,
    dimensions,
    flag,
    layouts,
    measured,
    name_or_names,
    pool,
    rate,
    seconds,
    size,
    value,
    weights,
)
from partitioner.estimation.device_operations import ROUTINGS
from partitioner.exports.writers import TARGETS
from partitioner.formats.llm.parallelism import KERNELS
from partitioner.workload.devices import COMMUNICATION_MODELS, SHARES
from partitioner.workload.exchange import EXCHANGES
from partitioner.workload.extras import TIME_UNITS
from partitioner.workload.tied_weights import CHOICES
from partitioner.workload.training_states import OPTIMIZERS, RECOMPUTE

OF_WORKLOAD = "of the workload"
OF_PLAN = "of the plan, or else of the workload"
WORKLOAD = value(
    "workload",
    "read the workload from this file: a workload in JSON, layers in JSON or a table (.csv), the config of a "
    "language model (.json), an ONNX model (.onnx), a profile of PipeDream's profiler (.txt), a folder with "
    "profiles of Metis or Sailor for several kinds of devices",
    metavar="WORKLOAD",
)
PLAN = value(
    "plan",
    "read the plan from this file, which solve has written, or a split with fpgas and cpus",
    metavar="PLAN",
)
FORMAT = value(
    "--format",
    "print text, or exactly one JSON object (default: text)",
    default="text",
    choices=("text", "json"),
)
LAYOUT = (
    value(
        "--ways",
        "let every layer of a config also run in these layouts, such as "
        '"tensor=2;tensor=4,recompute=full" (default: in the one that the other options say)',
        type=layouts,
        metavar="LAYOUT;...",
    ),
    *(
        value(
            f"--{name}",
            f"let this number of devices divide {what} of a config (default: 1)",
            type=int,
            metavar="N",
        )
        for name, what in (
            ("tensor", "heads, networks and vocabulary of every layer"),
            ("context-parallel", "the tokens of every sequence"),
            ("expert-parallel", "the experts of every layer"),
        )
    ),
    flag(
        "--sequence-parallel",
        "let the devices of --tensor also divide the tokens between products (default: each has all of them)",
    ),
    value(
        "--data-parallel",
        "let each device stand for this number of replicas, which divide what --zero says (default: 1)",
        type=int,
        metavar="N",
    ),
    value(
        "--zero",
        "divide among the replicas of --data-parallel nothing (0), the optimizer's state (1), gradients too "
        "(2), or parameters too, as FSDP does (3) (default: 0)",
        type=int,
        metavar="N",
    ),
    value(
        "--recompute-layers",
        "compute again in the backward pass nothing (none), or all but what each layer receives (full); of a "
        "config also the scores of attention (selective), norms and activation functions too (elementwise), "
        "these and every second product (alternate) (default: none)",
        choices=RECOMPUTE,
        dest="recompute",
    ),
    value(
        "--attention",
        "let the kernel of a config's attention keep the square of scores (unfused) or not (fused) "
        "(default: fused)",
        choices=KERNELS,
    ),
    flag(
        "--fused-gradients",
        "let a config's products add gradients to those of earlier samples (default: another kernel does)",
    ),
    flag(
        "--copied-gradients",
        "let a config's gradients be copied to the type in which they are added (default: added as they are)",
    ),
    flag(
        "--fused-casts",
        "let norms and activation functions of a config give factors of one byte (default: other kernels do)",
    ),
    flag(
        "--overlapped",
        "let devices that divide a config's layers exchange tensors while they compute products "
        "(default: in turn)",
    ),
    value(
        "--routing",
        "let tokens choose a config's experts evenly (balanced), or some more than others (power_law) "
        "(default: balanced for training, else power_law)",
        choices=ROUTINGS,
    ),
    flag(
        "--fused-gate",
        "let one kernel apply a config's activation function and multiply by the gate (default: two kernels, "
        "of which the second keeps what the first gives)",
    ),
    *(
        value(
            f"--{name}-dtype",
            f"keep a config's {what} with numbers of this type (default: {usual})",
            metavar="NAME",
        )
        for name, what, usual in (
            ("weight", "parameters", "that of --dtype; for training at least bfloat16"),
            ("gradient", "gradients", "that of the parameters"),
            ("cache", "keys and values", "that of --dtype, at least bfloat16"),
        )
    ),
    *(
        value(
            f"--profile-{name}",
            f"let the largest batch of a server have this number of {what}, and count its memory "
            "(default: none)",
            type=int,
            metavar="N",
        )
        for name, what in (
            ("tokens", "tokens, such as vLLM's max_num_batched_tokens"),
            ("sequences", "sequences, such as vLLM's max_num_seqs"),
        )
    ),
    value(
        "--optimizer",
        "keep the states of this optimizer for a config's parameters (default: adam)",
        choices=tuple(OPTIMIZERS),
    ),
    value(
        "--tied",
        "train copies of tied weights whose gradients are added up once a batch (copied), or keep all that "
        "reads them on one device (together); of solve also what of both is faster (auto) (default: the "
        "gradient goes one way, and one device holds the weights)",
        choices=CHOICES,
    ),
    value(
        "--optimizer-bytes",
        "let the optimizer keep this many bytes of a config's parameter, in place of --optimizer "
        "(default: those of Adam)",
        type=float,
        metavar="BYTES",
    ),
)
PROFILE = Section(
    "graphs from tables of layers, profiles and configs",
    (
        value(
            "--bandwidth",
            "move this many bytes per second between an accelerator and host memory, such as 25e9 or 25GB/s; "
            "a file whose transfers have sizes but no times needs this option (default: none)",
            type=rate,
            metavar="BYTES",
        ),
        value(
            "--peer-bandwidth",
            "move tensors from device to device, with this many bytes per second (default: that of "
            "--bandwidth, by the route that the devices have)",
            type=rate,
            metavar="BYTES",
        ),
        value(
            "--exchange-bandwidth",
            "let a replica send this many bytes of weights per second (default: that of --peer-bandwidth, "
            "else of --bandwidth)",
            type=rate,
            metavar="BYTES",
        ),
        value(
            "--link-latency",
            "add this many seconds, or a time such as 5us, to every message: each tensor that is sent, and "
            "each step of an exchange of weights (default: that of the devices, else 0)",
            type=seconds,
            metavar="TIME",
        ),
        value(
            "--cpu-factor",
            "let a CPU take this many times as long as an accelerator in a profile of PipeDream's, which "
            "needs this option for --cpus (default: none)",
            type=float,
            metavar="X",
        ),
        flag(
            "--inference",
            "leave out the backward pass (default: training, with a backward node for each node, if the file "
            "has times of the backward pass)",
            stands_for=False,
            dest="training",
        ),
        value(
            "--device",
            "estimate the times of a config's layers or of an ONNX model's nodes on this device, such as "
            "H100; a config needs it, and may have several, such as H100,A100-80, of which --pool gives the "
            "numbers (default: H100 for an ONNX model, none for a config)",
            type=name_or_names,
            metavar="NAME,...",
        ),
        value(
            "--sequence",
            "let every sequence pass a config's layers with this number of tokens; a config needs it "
            "(default: none)",
            type=int,
            metavar="N",
        ),
        value(
            "--batch",
            "let this number of sequences be a sample of a config, of a profile of Sailor or of a folder of "
            "profiles (default: 1; for profiles the only size that they have)",
            type=int,
            metavar="N",
        ),
        value(
            "--context",
            "let every sequence of a config have this number of tokens in the cache already (default: 0)",
            type=int,
            metavar="N",
        ),
        value(
            "--generate",
            "let every sequence of a config generate this number of tokens after its prompt of --sequence "
            "tokens: a sample is then one sequence, and the nodes have its cache (default: no serving)",
            type=int,
            metavar="N",
        ),
        value(
            "--phases",
            "add up the times of a workload file's or a served config's phases with these weights, such as "
            "prefill=1,decode=256 (default: the times of the file; prefill once and decode --generate times)",
            type=weights,
            metavar="NAME=X,...",
        ),
        value(
            "--measured",
            "scale a config's times so that a sample takes these seconds on one device, forward and, for "
            "training, backward; or some of its layers, as in model.layers.0=0.012 (default: no scaling)",
            type=measured,
            metavar="SECONDS",
        ),
        value(
            "--dtype",
            "compute a config's layers, or an ONNX model, with numbers of this type, such as bfloat16 "
            "(default: that of the config, those of the model)",
            metavar="NAME",
        ),
        value(
            "--dims",
            "give the dynamic dimensions of an ONNX model these sizes, such as batch=8,sequence=128 "
            "(default: none)",
            type=dimensions,
            metavar="NAME=N,...",
        ),
        value(
            "--times",
            "take the times of an ONNX model's nodes from this profile, a JSON file that ONNX Runtime wrote "
            "(default: an estimate for --device)",
            metavar="FILE",
        ),
        value(
            "--degree",
            "read the figures for this tensor-parallel degree from a file in Piper's format or a folder of "
            "profiles (default: 1)",
            type=int,
            metavar="N",
        ),
        value(
            "--time-unit",
            "take the times of a workload file that says no unit, or of a file in Piper's format, as seconds "
            "(s), ms or us (default: no unit; in Piper's format s)",
            choices=tuple(TIME_UNITS),
        ),
        value(
            "--efficiency",
            "let every operator of a config or an ONNX model reach this part of the devices' peak speed and "
            "bandwidth (default: what was measured for operators of its size)",
            type=float,
            metavar="X",
        ),
        *LAYOUT,
    ),
)


def devices(owner: str) -> Section:
    """Return the arguments that replace the devices of a workload or a plan."""
    return Section(
        f"devices, in place of those {owner}",
        (
            value(
                "--devices",
                f"read all devices, and how tensors travel, from this JSON file (default: those {owner})",
                metavar="FILE",
            ),
            value(
                "--accelerators",
                f"use this number of accelerators (default: those {owner})",
                type=int,
                metavar="N",
            ),
            value(
                "--memory",
                "let each accelerator hold at most this many bytes, such as 16e9, 16GB or 16GiB "
                f"(default: the limit {owner})",
                type=size,
                metavar="BYTES",
            ),
            value(
                "--pool",
                "use these numbers of devices by kind, each with at most this many bytes of memory if given, "
                f"such as GH-96=2:96GB,V100-16=3 (default: those {owner})",
                type=pool,
                metavar="KIND=N[:BYTES],...",
            ),
            value("--cpus", f"use this number of CPUs (default: those {owner})", type=int, metavar="N"),
            value(
                "--communication",
                "compute a device's load as the sum of transfers and processing (sequential), the larger of "
                "the two (overlapped), or the largest of receiving, processing and sending (duplex) "
                f"(default: the model {owner}, which is sequential if the file names none)",
                choices=COMMUNICATION_MODELS,
            ),
            value(
                "--exchange",
                "let replicas exchange weights once a batch by an all-reduce in a ring, where the number of "
                "microbatches is known (ring), or for every sample as in the paper (paper) "
                f"(default: the way {owner}, which is ring if the file names none)",
                choices=EXCHANGES,
            ),
            value(
                "--route",
                "move tensors through host memory (host), or from device to device (direct) "
                f"(default: the route {owner}, which is host if the file names none, and direct for a "
                "config's devices whose links to one another are known)",
                choices=tuple(SHARES),
            ),
        ),
    )


def constraints(otherwise: str) -> Section:
    """Return the arguments of constraints; `otherwise` is the default in words."""
    return Section(
        "constraints on the plan",
        (
            value(
                "--constraints",
                "read pins, prohibitions and limits on stages from this JSON file "
                f"(default: {otherwise or 'no constraints'})",
                metavar="FILE",
            ),
            value(
                "--expressible",
                f"require what this tool needs to express a plan: {', '.join(TARGETS)} "
                f"(default: {otherwise or 'no tool, any plan'})",
                choices=tuple(TARGETS),
                metavar="NAME",
            ),
            value(
                "--stages",
                "require this number of stages, replicas not counted "
                f"(default: {otherwise or 'as --constraints says, else any number'})",
                type=int,
                metavar="N",
            ),
            flag(
                "--use-all-devices",
                "require that every device holds a node "
                f"(default: {otherwise or 'as --constraints says, else some may be empty'})",
            ),
            flag(
                "--neighbours-only",
                "require that no edge skips a stage "
                f"(default: {otherwise or 'as --constraints says, else edges may skip stages'})",
            ),
            flag(
                "--equal-replicas",
                "require equal numbers of devices of all stages, as Megatron and torchtitan run them "
                f"(default: {otherwise or 'as --constraints says, else numbers may differ'})",
            ),
        ),
    )


def transfers(otherwise: str) -> tuple[Argument, ...]:
    """Return the arguments of transfers; `otherwise` says where they are read by default."""
    return (
        flag(
            "--contention",
            "let a device send or receive one tensor at a time "
            f"(default: {otherwise}, else transfers do not delay one another)",
        ),
        value(
            "--link-slope",
            "let a transfer take this time for each unit of its edge's cost "
            f"(default: {otherwise}, else what the dearer of the two devices pays)",
            type=float,
            metavar="X",
        ),
        value(
            "--link-intercept",
            f"let every transfer take this time in addition (default: {otherwise}, else 0)",
            type=float,
            metavar="T",
        ),
    )
