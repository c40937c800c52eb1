"""partitioner: optimal splits of neural-network computation graphs over devices, with proofs."""

from partitioner.certificate import Certificate
from partitioner.certify import certify
from partitioner.comparison.methods import MethodComparison, compare_methods
from partitioner.comparison.schedules import Comparison, compare_schedules
from partitioner.constraints import Constraints
from partitioner.devices import DeviceKind, Devices
from partitioner.errors import (
    BackendUnavailable,
    ContradictionError,
    InfeasibleError,
    NoPlanFound,
    OptionError,
    PartitionerError,
    WorkloadError,
)
from partitioner.evaluate import evaluate
from partitioner.evaluation.verdict import Evaluation
from partitioner.formats.msr import load
from partitioner.formats.networkx_graph import from_networkx, to_networkx
from partitioner.formats.pipedream import load_pipedream
from partitioner.formats.placement import load_placement
from partitioner.formats.plan import load_plan
from partitioner.formats.timeline import load_timeline
from partitioner.graph import Graph
from partitioner.levels import Level
from partitioner.methods.method import Progress
from partitioner.placing import Placer, Placing
from partitioner.plan import Plan
from partitioner.solution import Solution
from partitioner.solve import solve
from partitioner.splitting.data_parallel import data_parallel
from partitioner.splitting.dimension import Dimension
from partitioner.splitting.operations import SplitPlan, split_operations
from partitioner.transfers import Transfers
from partitioner.workload import Workload

__version__ = "0.1.0"
__all__ = [
    "BackendUnavailable",
    "Certificate",
    "Comparison",
    "Constraints",
    "ContradictionError",
    "DeviceKind",
    "Devices",
    "Dimension",
    "Evaluation",
    "Graph",
    "InfeasibleError",
    "Level",
    "MethodComparison",
    "NoPlanFound",
    "OptionError",
    "PartitionerError",
    "Placer",
    "Placing",
    "Plan",
    "Progress",
    "Solution",
    "SplitPlan",
    "Transfers",
    "Workload",
    "WorkloadError",
    "certify",
    "compare_methods",
    "compare_schedules",
    "data_parallel",
    "evaluate",
    "from_networkx",
    "load",
    "load_pipedream",
    "load_placement",
    "load_plan",
    "load_timeline",
    "solve",
    "split_operations",
    "to_networkx",
]
