# SPDX-License-Identifier: Apache-2.0
"""The table of a run, bench/results/<cpu>/peers.md."""
from __future__ import annotations

import collections
from collections.abc import Iterable, Sequence

import bench_results

from .losses import by_reason, losses
from .ranking import TIE, Agreement
from .rows import Figure, Row, Run, geometric_mean

LISTED = 12  # results that differ in a line; the others are counted
CONVERSIONS, SMALL_CONVERSIONS = "conversions", "conversions of 65,536"


def table(heads: Sequence[str], lines: Iterable[Sequence[str]]) -> list[str]:
    return ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads),
            *("| " + " | ".join(line) + " |" for line in lines)]


def ratio_text(figure: Figure | None) -> str:
    """A dash where the peer has nothing of the kind; marked where it is faster, or other bits."""
    if figure is None:
        return "-"
    number = f"{figure.ratio:.2f}" if figure.ratio < 10 else f"{figure.ratio:.0f}"
    return f"{'!' if figure.ratio < 1 else ''}{number}{'' if figure.is_same else ' ≠'}"


def peers_of(rows: Sequence[Row], run: Run) -> list[str]:
    """The peers that have a figure in any of the rows."""
    found = {figure.peer for row in rows for figure in row.figures()}
    return [peer for peer in run.peers() if peer in found]


# ---- the head ----

def head(run: Run, charts: Sequence[str]) -> list[str]:
    facts = {name: text for name, text in run.facts.items()
             if name not in ("versions", "missing", "command")}
    versions = ", ".join(f"{name} {version}" for name, version in run.facts["versions"].items())
    lines = [*facts.items(), ("peers", versions)]
    lines += [("not found", f"{name}: {why}") for name, why in run.facts["missing"].items()]
    lines.append(("command", bench_results.in_code(run.facts["command"])))
    return ["# castor and its peers", "", *table(("", ""), lines), "",
            "Written by `tools/peers`; [tools/comparison](../../../tools/comparison/README.md) says"
            " how it measures.",
            "Figures are the peer's time over castor's for the same tensors: above 1 castor is"
            " faster. `!`: the peer is faster.", "`≠`: the peer's result has other bits than"
            " castor's, which has those of its interpreter. `-`: the peer has nothing of the"
            " kind.", "", *(f"![{name.removesuffix('.svg')}]({name})" for name in charts)]


def losses_part(run: Run) -> list[str]:
    found = losses(run)
    count = sum(len(row.figures()) for row in [*run.timed(), *run.compiles()])
    lines = ["", "## Where a peer is faster", "",
             f"{len(found)} of {count} figures, {sum(loss.figure.ratio < 0.9 for loss in found)}"
             " of them below 0.9.", ""]
    cells = []
    for (reason, family, peer), group in by_reason(found).items():
        cells.append((reason, family, peer, str(len(group)),
                      "; ".join(loss.text() for loss in group)))
    return lines + table(("reason", "family", "peer", "figures", "ratios"), cells)


def agreement_part(agreement: Agreement | None) -> list[str]:
    if agreement is None:
        return []
    lines = ["", "## Two runs", "",
             "The same command was run twice. Orders of castor and a peer that are the same; times"
             f" within {TIE:.0%} count as no order:", ""]
    for threads, alike in agreement.alike.items():
        turned = agreement.turned[threads]
        lines.append(f"- {counted(threads)}: {alike} of {alike + len(turned)}"
                     + (f"; not {'; '.join(turned)}" if turned else ""))
    return lines


# ---- summaries ----

def summary_part(run: Run) -> list[str]:
    lines = ["", "## Summary", "",
             "By family, threads and peer: the number of figures, their geometric mean and range,"
             " and how many results have other bits.", ""]
    cells = []
    for family in run.families():
        for threads in run.threads():
            for peer in run.peers():
                figures = [row.figure(peer) for row in run.of(family, threads)]
                cells += summary_line(family, threads, peer,
                                      [each for each in figures if each is not None])
    return lines + table(("family", "threads", "peer", "figures", "mean", "least", "largest",
                          "faster than castor", "other bits"), cells)


def summary_line(family: str, threads: int, peer: str,
                 figures: Sequence[Figure]) -> list[tuple[str, ...]]:
    if not figures:
        return []
    ratios = [figure.ratio for figure in figures]
    return [(family, str(threads), peer, str(len(figures)), f"{geometric_mean(ratios):.2f}",
             f"{min(ratios):.2f}", f"{max(ratios):.4g}",
             str(sum(ratio < 1 for ratio in ratios)),
             str(sum(not figure.is_same for figure in figures)))]


# ---- conversions: a matrix for each peer ----

def pair(row: Row) -> tuple[str, str]:
    source, target = row.name.split(" to ")
    return source, target


def matrix(rows: Sequence[Row], peer: str) -> list[str]:
    """Types of which the peer has no pair are left out of it."""
    figures = {pair(row): row.figure(peer) for row in rows}
    has = {name for names, figure in figures.items() if figure for name in names}
    sources = [name for name in dict.fromkeys(source for source, _ in figures) if name in has]
    targets = [name for name in dict.fromkeys(target for _, target in figures) if name in has]
    lacking = [name for name in dict.fromkeys(target for _, target in figures) if name not in has]
    widths = [max(len(target), 7) for target in targets]
    corner = "from \\ to"
    heads = [f"{target:>{width}}" for target, width in zip(targets, widths)]
    lines = ["```text", " ".join([f"{corner:<10}", *heads])]
    for source in sources:
        texts = [ratio_text(figures.get((source, target))).replace(" ≠", "≠")
                 for target in targets]
        lines.append(" ".join([f"{source:<10}", *(f"{text:>{width}}"
                                                  for text, width in zip(texts, widths))]))
    lines.append("```")
    return lines + ([f"Without a pair: {', '.join(lacking)}."] if lacking else [])


def conversions_part(run: Run, family: str) -> list[str]:
    lines = ["", f"## {family[0].upper()}{family[1:]}"]
    for threads in run.threads():
        rows = run.of(family, threads)
        for peer in peers_of(rows, run):
            lines += ["", f"{peer}, {counted(threads)}:", "", *matrix(rows, peer)]
    return lines


def counted(threads: int) -> str:
    return "1 thread" if threads == 1 else f"{threads} threads"


# ---- other families: a line for each task ----

def family_part(run: Run, family: str) -> list[str]:
    lines = ["", f"## {family[0].upper()}{family[1:]}"]
    for threads in run.threads():
        rows = run.of(family, threads)
        if not rows:
            continue
        peers = peers_of(rows, run)
        forms = list(dict.fromkeys(form for row in rows for form in row.record["castor"]))
        heads = ["task", *(f"castor{', ' + form if form else ''}, us" for form in forms),
                 rows[0].record["unit"], *peers]
        cells = [[row.name, *(time_text(row, form) for form in forms), f"{row.castor_rate():.4g}",
                  *(ratio_text(row.figure(peer)) for peer in peers)] for row in rows]
        lines += ["", f"{counted(threads).capitalize()}:", "", *table(heads, cells)]
    return lines


def time_text(row: Row, form: str) -> str:
    if form not in row.record["castor"]:
        return ""
    return f"{row.castor_seconds(form) * 1e6:.4g}"


# ---- what is measured once ----

def compile_part(run: Run) -> list[str]:
    rows = run.of("compile time")
    if not rows:
        return []
    cells = [(row.name, peer, str(entry["count"]), *compile_times(entry, "cold"),
              *compile_times(entry, "warm"))
             for row in rows for peer, entry in row.record["peers"].items()]
    return ["", "## Compile time", "",
            "Microseconds from a description to what can be run, for functions not met before and"
            " once more (best of 5): medians over the functions that the peer has, and castor's"
            " for the same ones.", "",
            *table(("what", "peer", "functions", "cold, us", "castor", "ratio", "warm, us",
                    "castor", "ratio"), cells)]


def compile_times(entry: dict, kind: str) -> tuple[str, str, str]:
    theirs, ours = entry[kind], entry[f"castor_{kind}"]
    mark = "!" if theirs < ours else ""
    return f"{theirs * 1e6:.4g}", f"{ours * 1e6:.4g}", f"{mark}{theirs / ours:.2f}"


def start_part(run: Run) -> list[str]:
    cells = []
    for row in run.of("start-up"):
        figures = row.record["figures"]
        size = f"{figures['bytes'] / 1e6:.2f}" if "bytes" in figures else ""
        spent = figures.get("import_seconds", figures.get("create_seconds"))
        cells.append((row.name, size, "" if spent is None else f"{spent * 1e3:.2f}"))
    if not cells:
        return []
    return ["", "## Size and start-up", "",
            "The size of the shared libraries, for peers those of their package without what is"
            " for GPUs, and the time of an import after NumPy's or of creating a Runtime, each in"
            " new processes.", "", *table(("what", "MB", "ms"), cells)]


# ---- results that differ ----

def differences_part(run: Run) -> list[str]:
    groups: dict[tuple[str, str], list[str]] = collections.defaultdict(list)
    for row in run.timed():
        if row.threads == min(run.threads()):
            for figure in row.figures():
                if figure.differs is not None:
                    groups[row.family, figure.peer].append(
                        f"{row.name} {difference_text(figure.differs)}")
    for row, peer, why in run.broken():
        if row.threads == min(run.threads()):
            groups[row.family, f"{peer} {why}"].append(row.name)
    if not groups and not run.failures():
        return []
    cells = [(family, peer, str(len(texts)), "; ".join(texts[:LISTED])
              + (f"; and {len(texts) - LISTED} more" if len(texts) > LISTED else ""))
             for (family, peer), texts in groups.items()]
    lines = ["", "## Results that differ", "",
             "How many elements, and by how much at most; signs: zeros of another sign or NaNs of"
             " other bits alone.", "", *table(("family", "peer", "tasks", "elements"), cells)]
    return lines + [f"- {row.family}, {row.name}: {peer} failed: {why}"
                    for row, peer, why in run.failures()]


def difference_text(differs: dict) -> str:
    if differs["elements"] == 0:
        return "(signs)"
    return f"({differs['elements']} of {differs['of']} by {differs['apart']:.3g})"


def markdown(run: Run, charts: Sequence[str], agreement: Agreement | None) -> str:
    lines = head(run, charts) + losses_part(run) + agreement_part(agreement) + summary_part(run)
    for family in run.families():
        is_matrix = family in (CONVERSIONS, SMALL_CONVERSIONS)
        lines += conversions_part(run, family) if is_matrix else family_part(run, family)
    lines += compile_part(run) + start_part(run) + differences_part(run)
    return "\n".join(lines) + "\n"
