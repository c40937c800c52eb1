"""A profile as the text of a ``graph.txt``: what the reader must read back."""

from __future__ import annotations

from partitioner.formats.pipedream import Profile


def render(profile: Profile) -> str:
    """The file's text; numbers in full."""
    nodes = [node_line(profile, i) for i in range(len(profile))]
    edges = [f"\t{profile.ids[u]} -- {profile.ids[v]}" for u, v in profile.edges.tolist()]
    return "\n".join([*nodes, *edges])


def node_line(profile: Profile, i: int) -> str:
    """The line of one node."""
    fields = {
        "forward_compute_time": profile.forward[i],
        "backward_compute_time": profile.backward[i],
        "activation_size": profile.activation[i],
        "parameter_size": profile.parameters[i],
    }
    numbers = ", ".join(f"{name}={float(value)!r}" for name, value in fields.items())
    stage = f" -- stage_id={profile.stage[i]}" if profile.stage[i] >= 0 else ""
    return f"{profile.ids[i]} -- {profile.descriptions[i]} -- {numbers}{stage}"
