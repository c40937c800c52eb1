"""All names of the package, which :mod:`partitioner` imports when the first of them is asked for."""

from partitioner.analysis.explanations.conflict import Conflict, conflicting_demands
from partitioner.analysis.explanations.difference import PlanDifference, diff
from partitioner.analysis.explanations.explain import explain
from partitioner.analysis.explanations.explanation import Explanation
from partitioner.analysis.reports.layouts import report_layouts
from partitioner.analysis.reports.report import Report, report
from partitioner.analysis.sweeps.pool import DevicePool
from partitioner.analysis.sweeps.result import SweepResult
from partitioner.analysis.sweeps.row import SweepRow
from partitioner.analysis.sweeps.run import sweep
from partitioner.analysis.sweeps.state import SweepProgress
from partitioner.base.errors import (
    BackendUnavailable,
    ContradictionError,
    InfeasibleError,
    NoPlanFound,
    OptionError,
    PartitionerError,
    WorkloadError,
)
from partitioner.evaluation.result import Evaluation
from partitioner.evaluation.solution import Solution
from partitioner.exports.expressible import expressible
from partitioner.exports.target import ExportError
from partitioner.exports.writers import export
from partitioner.formats.load import load
from partitioner.formats.load_config import load_config
from partitioner.formats.pipedream import load_pipedream
from partitioner.formats.plan import load_placement, load_plan
from partitioner.formats.timeline import load_timeline
from partitioner.methods.method import Progress
from partitioner.methods.placing import Placer, Placing
from partitioner.planning.certify import certify
from partitioner.planning.comparison.methods import MethodComparison, compare_methods
from partitioner.planning.comparison.recommend import Recommendation, recommend
from partitioner.planning.comparison.schedules import Comparison, compare_schedules
from partitioner.planning.evaluate import evaluate
from partitioner.planning.layouts.layout import ClusterLayout
from partitioner.planning.layouts.plan import plan
from partitioner.planning.layouts.result import LayoutPlan
from partitioner.planning.pools.plan_pool import plan_pool
from partitioner.planning.pools.result import PoolPlan
from partitioner.planning.serving.plan_serving import plan_serving
from partitioner.planning.serving.result import ServingPlan
from partitioner.planning.sizing.fewest_devices import FewestDevices, fewest_devices
from partitioner.planning.sizing.least_memory import LeastMemory, least_memory
from partitioner.planning.solve import solve
from partitioner.planning.splitting.data_parallel import data_parallel
from partitioner.planning.splitting.dimension import Dimension
from partitioner.planning.splitting.operations import SplitPlan, split_operations
from partitioner.planning.warm_up.run import WarmUp, warm_up
from partitioner.results.certificate import Certificate
from partitioner.results.plan import Plan
from partitioner.workload.alternatives import Alternative, Alternatives
from partitioner.workload.constraints import Constraints
from partitioner.workload.devices import DeviceKind, Devices
from partitioner.workload.graph import Graph
from partitioner.workload.groups import DeviceGroup, GroupLink
from partitioner.workload.layer import Layer
from partitioner.workload.levels import Level
from partitioner.workload.networkx_graph import from_networkx, to_networkx
from partitioner.workload.phases import weigh_phases
from partitioner.workload.training_states import with_training_states
from partitioner.workload.transfers import Transfers
from partitioner.workload.workload import Workload

__all__ = [
    "Alternative",
    "Alternatives",
    "BackendUnavailable",
    "Certificate",
    "ClusterLayout",
    "Comparison",
    "Conflict",
    "Constraints",
    "ContradictionError",
    "DeviceGroup",
    "DeviceKind",
    "DevicePool",
    "Devices",
    "Dimension",
    "Evaluation",
    "Explanation",
    "ExportError",
    "FewestDevices",
    "Graph",
    "GroupLink",
    "InfeasibleError",
    "Layer",
    "LayoutPlan",
    "LeastMemory",
    "Level",
    "MethodComparison",
    "NoPlanFound",
    "OptionError",
    "PartitionerError",
    "Placer",
    "Placing",
    "Plan",
    "PlanDifference",
    "PoolPlan",
    "Progress",
    "Recommendation",
    "Report",
    "ServingPlan",
    "Solution",
    "SplitPlan",
    "SweepProgress",
    "SweepResult",
    "SweepRow",
    "Transfers",
    "WarmUp",
    "Workload",
    "WorkloadError",
    "certify",
    "compare_methods",
    "compare_schedules",
    "conflicting_demands",
    "data_parallel",
    "diff",
    "evaluate",
    "explain",
    "export",
    "expressible",
    "fewest_devices",
    "from_networkx",
    "least_memory",
    "load",
    "load_config",
    "load_pipedream",
    "load_placement",
    "load_plan",
    "load_timeline",
    "plan",
    "plan_pool",
    "plan_serving",
    "recommend",
    "report",
    "report_layouts",
    "solve",
    "split_operations",
    "sweep",
    "to_networkx",
    "warm_up",
    "weigh_phases",
    "with_training_states",
]
