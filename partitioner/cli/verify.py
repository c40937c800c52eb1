"""The command ``partitioner verify``."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace

from partitioner.base.files import check_writable
from partitioner.cli.argument import Section, flag, value
from partitioner.cli.inputs import read_planned
from partitioner.cli.output import show
from partitioner.cli.scripts import CALL_RULE, call_made_by
from partitioner.cli.shared_arguments import FORMAT, OF_PLAN, PLAN, PROFILE, WORKLOAD, devices
from partitioner.exports.chrome_trace import save_chrome_trace
from partitioner.formats.plan_record import load_record

FEW, MANY = 4, 16
VERIFY = (
    Section(
        "",
        (
            value(
                "script",
                f"a file and a function of it; it {CALL_RULE} (the argument is required)",
                metavar="SCRIPT:FUNCTION",
            ),
            WORKLOAD,
            PLAN,
            value(
                "--schedule",
                "run this schedule (default: the plan's, else 1f1b, or inference without a loss)",
                metavar="NAME",
            ),
            value(
                "--microbatches",
                f"run this many microbatches, and a quarter of them for the steady state (default: {MANY})",
                type=int,
                default=MANY,
                metavar="N",
            ),
            value("--rounds", "repeat each batch this often (default: 3)", type=int, default=3, metavar="N"),
            flag(
                "--calibrate",
                "predict with whole passes and with what the runtime adds, both measured first, some 20 s "
                "(default: with the workload's times alone)",
            ),
            value(
                "--trace",
                "write a Chrome trace of the run and the simulation to this file (default: none is written)",
                metavar="TRACE.json",
            ),
            FORMAT,
        ),
    ),
    devices(OF_PLAN),
    PROFILE,
)


def verify_plan(options: argparse.Namespace) -> None:
    """Run a plan's pipeline on this machine, and print what was measured beside the prediction.

    Raises
    ------
    PartitionerError
        If a file or an option breaks a rule, the script or a process fails, or a file cannot be written.
    """
    from partitioner.integrations.torch.installed import require_torch

    require_torch()
    import torch

    from partitioner.integrations.torch.pipelines.stages import stages_of
    from partitioner.integrations.torch.verification.comparing import AS_IT_IS, compare_with_run
    from partitioner.integrations.torch.verification.measuring import measure_pipeline
    from partitioner.integrations.torch.verification.model_passes import whole_passes
    from partitioner.integrations.torch.verification.runtime_costs import runtime_corrections

    check_writable(options.trace)
    torch.set_num_threads(1)  # before anything is run: processes that are forked later inherit no threads
    call = call_made_by(options.script)
    workload, record = read_planned(options, load_record(options.plan))
    stages, terms = stages_of(call.model, call.args, workload.graph, record, kwargs=call.kwargs), AS_IT_IS
    if options.calibrate:
        passes = whole_passes(
            call.model,
            call.args,
            call.kwargs,
            loss=call.loss,
            targets=call.targets,
            processes=len(stages.devices),
        )
        workload = replace(workload, graph=passes.applied(workload.graph))
        terms = runtime_corrections()
    run = measure_pipeline(
        stages,
        call.args,
        kwargs=call.kwargs,
        schedule=options.schedule or record.schedule,
        microbatches=(max(1, options.microbatches // 4), options.microbatches),
        loss=call.loss if call.targets or call.loss is None else lambda output, _: call.loss(output),
        target=next(iter(call.targets), None),
        rounds=options.rounds,
    )
    found = compare_with_run(workload, record, run, terms)
    text = json.dumps(found.as_dict(), indent=1) if options.format == "json" else found.summary()
    runs = {one.schedule: one for one in (found.simulated, run.timeline)}
    show(text, *[lambda: save_chrome_trace(runs, options.trace)] * (options.trace is not None))
