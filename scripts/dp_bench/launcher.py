"""Run a program on a file and tell its seconds and peak memory; small, so that it adds little.

Called as ``launcher.py SECONDS INPUT PROGRAM``. The program's output goes to standard output, the record
to standard error as one JSON object. Linux counts the memory of the launching process into the peak
of what it launches, so this one imports next to nothing before the program runs.
"""

import os
import signal
import sys
import time


def main(limit: float, source: str, program: str) -> dict[str, object]:
    """Run the program with the file as its standard input, for at most `limit` seconds."""
    handle = os.open(source, os.O_RDONLY)
    actions = [
        (os.POSIX_SPAWN_DUP2, handle, 0),
        (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0o600),
    ]
    started = time.perf_counter()
    child = os.posix_spawn(program, [program], os.environ, file_actions=actions)
    signal.signal(signal.SIGALRM, lambda *_: os.kill(child, signal.SIGKILL))
    signal.setitimer(signal.ITIMER_REAL, limit)
    _, status, usage = os.wait4(child, 0)
    seconds = time.perf_counter() - started
    signal.setitimer(signal.ITIMER_REAL, 0)
    code = os.waitstatus_to_exitcode(status)
    return {"seconds": seconds, "peak_bytes": usage.ru_maxrss * 1024, "exit_code": code}


if __name__ == "__main__":
    result = main(float(sys.argv[1]), sys.argv[2], sys.argv[3])
    import json

    print(json.dumps(result), file=sys.stderr)
