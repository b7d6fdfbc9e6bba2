"""Figures of the machine and of processes, from the kernel."""

import os
import platform
from pathlib import Path


def megabytes(pid: int) -> float:
    """Resident memory of a process and its children."""
    pages = sum(int(Path(f"/proc/{p}/statm").read_text().split()[1]) for p in family(pid))
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def family(pid: int) -> list[int]:
    """A process and all its descendants."""
    found = [pid]
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = path.read_text().split()
        except FileNotFoundError:
            continue  # a thread that has just ended
        for child in children:
            found += family(int(child))
    return found


def processor_seconds(pid: int) -> float:
    """Processor time of a process, of its children, and of those that have ended."""
    ticks = 0
    for member in family(pid):
        try:
            stat = Path(f"/proc/{member}/stat").read_text()
        except FileNotFoundError:
            continue  # ended just now
        ticks += sum(map(int, stat.rpartition(")")[2].split()[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def thread_seconds(pid: int) -> float:
    """Processor time of a process of one thread, in nanoseconds where the kernel counts them, else in clock ticks."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9
    except FileNotFoundError:
        return processor_seconds(pid)


def machine() -> dict[str, str]:
    processor = memory = ""
    for line in _lines("/proc/cpuinfo"):
        if line.startswith("model name"):
            processor = line.partition(":")[2].strip()
            break
    for line in _lines("/proc/meminfo"):
        if line.startswith("MemTotal"):
            memory = f"{int(line.split()[1]) / 1e6:.0f} GB"
    return {
        "processor": processor or platform.processor() or platform.machine(),
        "cores": str(os.cpu_count()),
        "memory": memory,
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
    }


def load() -> float:
    """The load average of the last minute."""
    return os.getloadavg()[0]


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []
