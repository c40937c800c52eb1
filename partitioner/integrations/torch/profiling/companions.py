"""Processes that run a program again and again while another one measures it."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from partitioner.integrations.torch.profiling.runnable import RunnableGraph


class Left(Exception):  # noqa: N818 - not an error
    """The process that measures is gone."""


@contextmanager
def companions(program: RunnableGraph, count: int) -> Iterator[None]:
    """Let several processes of one thread each run a program until the context ends.

    They are forks, so that they need not load torch again; they share the processors, the caches and the
    memory with what is measured meanwhile.
    """
    if not count:
        yield
        return
    context: Any = multiprocessing.get_context("fork")
    parent = os.getpid()
    running = [context.Process(target=_run, args=(program, parent), daemon=True) for _ in range(count)]
    try:
        for process in running:
            process.start()
        yield
    finally:
        for process in running:
            if process.pid is not None:
                process.kill()
                process.join()


def _run(program: RunnableGraph, parent: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(1)

    def check() -> None:
        if os.getppid() != parent:
            raise Left

    try:
        while True:
            program.run(_plain, check)
    except Left:
        pass


def _plain(target: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    return target(*args, **kwargs)
