# SPDX-License-Identifier: Apache-2.0
"""Charts of a run, drawn with matplotlib as SVG."""
from __future__ import annotations

import pathlib

import matplotlib

matplotlib.use("svg")
matplotlib.rcParams["svg.hashsalt"] = "castor"  # the same figures give the same file
matplotlib.rcParams["font.size"] = 9
import matplotlib.pyplot as plt  # noqa: E402
import numpy as np  # noqa: E402
from matplotlib.colors import TwoSlopeNorm  # noqa: E402

from .markdown import CONVERSIONS, pair, peers_of  # noqa: E402
from .rows import Run, geometric_mean  # noqa: E402

COLOURS = {"castor": "#1b6ca8", "oneDNN 3": "#e08e2b", "oneDNN 2": "#c9b458",
           "ONNX Runtime": "#5b8c5a", "OpenVINO": "#8e5ea2", "PyTorch": "#c0504d",
           "torch.compile": "#e6a5a1", "NumPy": "#7f7f7f", "ml_dtypes": "#b0b0b0"}
OTHER = "#444444"


def save(figure: plt.Figure, path: pathlib.Path) -> str:
    figure.savefig(path, format="svg", bbox_inches="tight", metadata={"Date": None})
    plt.close(figure)
    return path.name


def summary(run: Run, path: pathlib.Path) -> str:
    """The geometric mean of each peer in each family, on one thread."""
    families, peers = run.families(), run.peers()
    figure, axes = plt.subplots(figsize=(9, 4))
    width = 0.8 / len(peers)
    named: set[str] = set()
    for number, peer in enumerate(peers):
        for index, family in enumerate(families):
            found = [each.ratio for row in run.of(family, 1)
                     if (each := row.figure(peer)) is not None]
            if found:
                mean = geometric_mean(found)
                axes.bar(index + (number - (len(peers) - 1) / 2) * width, mean - 1, width, bottom=1,
                         color=COLOURS.get(peer, OTHER),
                         label=None if peer in named else peer)
                named.add(peer)
    axes.set_yscale("log")
    axes.axhline(1, color="black", linewidth=1)
    axes.set_xticks(range(len(families)), families, rotation=15)
    axes.set_ylabel("time of the peer over castor's")
    axes.set_title("castor and its peers, one thread: geometric means (above 1: castor is faster)")
    axes.set_ylim(bottom=0.5)
    axes.yaxis.set_major_formatter("{x:g}")
    axes.legend(ncols=1, fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
    return save(figure, path)


def conversions(run: Run, path: pathlib.Path) -> str:
    """The fastest peer of each pair."""
    rows = run.of(CONVERSIONS, 1)
    sources = list(dict.fromkeys(pair(row)[0] for row in rows))
    targets = list(dict.fromkeys(pair(row)[1] for row in rows))
    values = np.full((len(sources), len(targets)), np.nan)
    for row in rows:
        ratios = [figure.ratio for figure in row.figures() if figure.is_same]
        if ratios:
            source, target = pair(row)
            values[sources.index(source), targets.index(target)] = np.log2(min(ratios))
    figure, axes = plt.subplots(figsize=(8, 7))
    axes.set_facecolor("#dddddd")
    shown = axes.pcolormesh(values, cmap="RdBu", norm=TwoSlopeNorm(0, -1, 5), rasterized=True)
    axes.set_xticks(np.arange(len(targets)) + 0.5, targets, rotation=90)
    axes.set_yticks(np.arange(len(sources)) + 0.5, sources)
    axes.invert_yaxis()
    bar = figure.colorbar(shown, ticks=range(-1, 6))
    bar.ax.set_yticklabels([f"{2.0 ** power:g}" for power in range(-1, 6)])
    axes.set_title("conversions, one thread: time of the fastest peer over castor's\n"
                   "(row: from; column: to; grey: no peer has the pair with castor's bits)")
    return save(figure, path)


def rates(run: Run, family: str, suffix: str, title: str, path: pathlib.Path) -> str:
    """GMAC/s by task, for castor and the peers."""
    rows = [row for row in run.of(family, 1) if row.name.endswith(suffix)]
    peers = peers_of(rows, run)
    names = ["castor", *peers]
    figure, axes = plt.subplots(figsize=(9, 0.22 * len(rows) + 1.5))
    height = 0.8 / len(names)
    for number, name in enumerate(names):
        found = [row.castor_rate() if name == "castor" else row.peer_rate(name) or 0
                 for row in rows]
        axes.barh(np.arange(len(rows)) + (number - (len(names) - 1) / 2) * height, found, height,
                  color=COLOURS.get(name, OTHER), label=name)
    axes.set_yticks(range(len(rows)), [row.name.removesuffix(suffix) for row in rows])
    axes.invert_yaxis()
    axes.set_xlabel("GMAC/s")
    axes.set_title(title)
    axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
    return save(figure, path)


def draw(run: Run, folder: pathlib.Path) -> list[str]:
    """All charts of which the run has rows; the names of the files."""
    if 1 not in run.threads():
        return []
    made = [summary(run, folder / "peers.svg")]
    if run.of(CONVERSIONS, 1):
        made.append(conversions(run, folder / "peers-conversions.svg"))
    for family, suffix, name in (("ConvInteger", " u8 x i8", "peers-conv-integer.svg"),
                                 ("QLinearConv", "", "peers-qlinear-conv.svg"),
                                 ("MatMulInteger", " u8 x i8", "peers-matmul-integer.svg")):
        if run.of(family, 1):
            made.append(rates(run, family, suffix, f"{family}{suffix}, one thread",
                              folder / name))
    return made
