"""Celeritas (Xu, Liao, Xie and Zhou, 2022): fused operators along the critical path, placed one by one."""
