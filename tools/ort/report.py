# SPDX-License-Identifier: Apache-2.0
"""What ort-compare prints and writes: rows of models, and a summary of generated graphs."""
import collections
import dataclasses
import datetime
import math
import os
import pathlib
import re
from collections.abc import Iterable, Sequence

import bench_results
import onnxruntime

SLOW = 0.98  # no model is to be slower than this with the plugin
SLOWEST = 10  # generated graphs that are listed

HEADINGS = ("model", "threads", "stock ms", "castor ms", "ratio", "created ms", "with castor",
            "nodes taken", "results")
WIDTHS = (24, 7, 10, 10, 8, 10, 11, 11, 18)


@dataclasses.dataclass(frozen=True)
class Row:
    """What a process measured of one model, or why it measured nothing."""
    name: str
    measured: dict
    failure: str = ""

    @property
    def is_generated(self) -> bool:
        return self.name.startswith("generated_")

    @property
    def is_wrong(self) -> bool:
        return bool(self.failure) or self.measured["steps"] > self.measured["allowed"]

    def ratios(self) -> dict[int, float]:
        """Stock ONNX Runtime's time over that with castor, by threads."""
        return {int(threads): stock / castor
                for threads, (stock, castor) in self.measured.get("times", {}).items()}

    def slowest_ratio(self) -> float:
        return min(self.ratios().values(), default=math.inf)

    def results(self) -> str:
        """How far apart the results are, and how far they may be."""
        steps, allowed = self.measured["steps"], self.measured["allowed"]
        if steps == 0:
            return "same bits"
        return f"{'!' if self.is_wrong else ''}{steps:.2g} of {allowed:.2g} steps"

    def nodes(self) -> str:
        taken = sum(self.measured["taken"].values())
        return f"{taken} of {taken + sum(self.measured['left'].values())}"

    def cells(self) -> list[tuple[str, ...]]:
        """A line for each number of threads; what does not depend on it is in the first."""
        if self.failure:
            return [(self.name, "", "", "", "", "", "", "", f"!{self.failure}")]
        lines = []
        once = [f"{each:.1f}" for each in self.measured["creation"]]
        once += [self.nodes(), self.results()]
        for threads, times in self.measured["times"].items():
            ratio = self.ratios()[int(threads)]
            mark = "!" if ratio < SLOW else ""
            lines.append((self.name, threads, *(f"{each:.3f}" for each in times),
                          f"{mark}{ratio:.2f}", *once))
            once = [""] * len(once)
        return lines


def text_line(cells: Sequence[str]) -> str:
    """The name on the left, figures on the right."""
    words = [f"{cells[0]:<{WIDTHS[0]}}"]
    words += [f"{cell:>{width}}" for cell, width in zip(cells[1:], WIDTHS[1:])]
    return "  ".join(words)


def counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def summary(rows: Iterable[Row]) -> list[str]:
    """Of several models together, by threads."""
    ratios = collections.defaultdict(list)
    for row in rows:
        for threads, ratio in row.ratios().items():
            ratios[threads].append(ratio)
    return [f"{counted(len(each), 'model')}, {counted(threads, 'thread')}: geometric mean "
            f"{math.exp(sum(map(math.log, each)) / len(each)):.2f}, {min(each):.2f} to "
            f"{max(each):.2f}, {sum(ratio < SLOW for ratio in each)} below {SLOW}"
            for threads, each in sorted(ratios.items())]


# ---- the file of results ----

def table(heads: Sequence[str], lines: Iterable[Sequence[str]]) -> list[str]:
    return ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads),
            *("| " + " | ".join(line) + " |" for line in lines)]


def cpu_name() -> str:
    text = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
    found = re.search(r"^model name\s*: (.*)$", text, re.M)
    return found.group(1) if found else "unknown"


def facts(command: str, load: float) -> list[tuple[str, str]]:
    return [("CPU", f"{cpu_name()}, {len(os.sched_getaffinity(0))} CPUs"),
            ("ONNX Runtime", f"{onnxruntime.__version__}, its CPU provider"),
            ("castor", f"commit {bench_results.tree_commit()}"),
            ("date", datetime.date.today().isoformat()),
            ("load average before", f"{load:.1f}"),
            ("command", bench_results.in_code(command))]


def by_count(counts: collections.Counter) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def left_nodes(rows: Iterable[Row]) -> list[tuple[str, str]]:
    """The operators that ONNX Runtime keeps, most frequent first."""
    counts = [(row.name, collections.Counter(row.measured.get("left", {}))) for row in rows]
    return [(name, ", ".join(f"{count} {op}" for op, count in by_count(left)))
            for name, left in counts if left]


def models_part(rows: Sequence[Row]) -> list[str]:
    cells = [line for row in rows for line in row.cells()]
    lines = ["", "## Models", "", *table(HEADINGS, cells), "",
             *(f"- {line}" for line in summary(rows))]
    left = left_nodes(rows)
    if left:
        lines += ["", "Nodes that are left to ONNX Runtime:", "",
                  *table(("model", "operators"), left)]
    return lines


def generated_part(rows: Sequence[Row]) -> list[str]:
    """The slowest, and all that are wrong."""
    ordered = sorted(rows, key=Row.slowest_ratio)
    listed = [row for number, row in enumerate(ordered) if number < SLOWEST or row.is_wrong]
    return ["", "## Generated graphs", "", *(f"- {line}" for line in summary(rows)), "",
            f"The {min(SLOWEST, len(rows))} slowest, and those with wrong results:", "",
            *table(HEADINGS, (cells for row in listed for cells in row.cells()))]


def markdown(title: str, chart: str, rows: Sequence[Row], command: str, load: float) -> str:
    """The file; `chart` is the name of the chart's, beside it."""
    models = [row for row in rows if not row.is_generated]
    generated = [row for row in rows if row.is_generated]
    lines = [f"# {title}", "", *table(("", ""), facts(command, load)), "",
             "Written by `tools/ort-compare`; [tools/ort/README.md](../../tools/ort/README.md) "
             "says what the figures mean.",
             "Figures marked `!` are slower than asked, or wrong.", "",
             f"![How many times faster with castor]({chart})"]
    if models:
        lines += models_part(models)
    if generated:
        lines += generated_part(generated)
    return "\n".join(lines) + "\n"
