"""How much memory this process takes: Linux tells, in /proc.

Not by getrusage: its peak is handed down from the process that started this one.
"""

from pathlib import Path


def now_bytes() -> int:
    return _status("VmRSS")


def peak_bytes() -> int:
    return _status("VmHWM")


def _status(name: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) << 10
    raise AssertionError(f"/proc/self/status has no {name}")


def mapped_bytes(path: Path) -> int:
    """How much of a mapped file is in this process's memory."""
    total, ours = 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if "-" in line.split(" ", 1)[0]:  # the head of another mapping
            ours = line.endswith(str(path))
        elif ours and line.startswith("Rss:"):
            total += int(line.split()[1]) << 10
    return total
