"""Celeritas (Xu, Liao, Xie and Zhou, 2022): operators fused along the critical path, placed one by one."""
