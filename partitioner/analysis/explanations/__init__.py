"""Why a plan is as it is: its bottleneck, what a change buys, which demands conflict, how plans differ."""
