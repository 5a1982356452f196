# SPDX-License-Identifier: Apache-2.0
"""What stands above the tables: the machine, castor's commit, the date, the command."""
from __future__ import annotations

import datetime
import os
import pathlib
import platform
import re

import bench_results


def cpu_name() -> str:
    text = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
    found = re.search(r"^model name\s*: (.*)$", text, re.M)
    return found.group(1) if found else "unknown"


def cpu_family() -> str:
    text = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
    found = {name: re.search(rf"^{name}\s*: (.*)$", text, re.M)
             for name in ("vendor_id", "cpu family", "model")}
    return ", ".join(f"{name} {match.group(1)}" for name, match in found.items() if match)


def caches() -> str:
    """The data and unified caches of the first CPU."""
    folder = pathlib.Path("/sys/devices/system/cpu/cpu0/cache")
    found = []
    for index in sorted(folder.glob("index*")):
        if (index / "type").read_text().strip() != "Instruction":
            size = (index / "size").read_text().strip()
            found.append(f"L{(index / 'level').read_text().strip()} {size}")
    return ", ".join(found) or "unknown"


def facts(command: str, commit: str | None) -> dict[str, str]:
    return {"CPU": f"{cpu_name()} ({cpu_family()}), {len(os.sched_getaffinity(0))} CPUs",
            "caches": caches(), "castor": f"commit {commit or bench_results.tree_commit()}",
            "Python": platform.python_version(), "date": datetime.date.today().isoformat(),
            "load average before": f"{os.getloadavg()[0]:.1f}", "command": command}
