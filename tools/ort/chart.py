# SPDX-License-Identifier: Apache-2.0
"""A chart of how many times faster models are with castor, as SVG."""
import math
from collections.abc import Sequence
from xml.sax.saxutils import escape

from .report import SLOW, Row, counted

LEFT, RIGHT, TOP, WIDTH = 180, 70, 80, 760  # the margins and width in pixels
BAR, GAP, STRIP = 11, 9, 170  # heights: a bar, between models, all generated graphs
COLOURS = ("#1b6ca8", "#e08e2b")  # by number of threads
SLOW_COLOUR = "#b00020"


class Scale:
    """Ratios as pixels from the left, logarithmic, from a power of two to a power of two."""

    def __init__(self, ratios: Sequence[float]):
        self.low = math.floor(math.log2(min([0.5, *ratios])))
        self.high = math.ceil(math.log2(max([2.0, *ratios])))

    def x(self, ratio: float) -> float:
        return LEFT + WIDTH * (math.log2(ratio) - self.low) / (self.high - self.low)

    def marks(self) -> list[float]:
        return [2.0 ** power for power in range(self.low, self.high + 1)]


def text(x: float, y: float, words: str, anchor: str = "middle", size: int = 11,
         fill: str = "#222") -> str:
    return (f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" '
            f'fill="{fill}">{escape(words)}</text>')


def axis(scale: Scale, top: float, bottom: float) -> list[str]:
    parts = []
    for mark in scale.marks():
        x, colour = scale.x(mark), "#222" if mark == 1 else "#ddd"
        parts.append(f'<path d="M{x:.1f} {top}V{bottom}" stroke="{colour}"/>')
        parts.append(text(x, top - 6, f"{mark:g}"))
    return parts


def bar(scale: Scale, y: float, ratio: float, threads: int, colour: str) -> list[str]:
    """From 1 to the ratio; a slow one is red."""
    begin, end = sorted((scale.x(1), scale.x(ratio)))
    fill = SLOW_COLOUR if ratio < SLOW else colour
    return [f"<g><title>{counted(threads, 'thread')}: {ratio:.3f}</title>"
            f'<rect x="{begin:.1f}" y="{y}" width="{max(end - begin, 1):.1f}" height="{BAR}" '
            f'fill="{fill}"/></g>', text(end + 5, y + BAR - 2, f"{ratio:.2f}", "start", 10)]


def bars(scale: Scale, rows: Sequence[Row], threads: Sequence[int], top: float) -> list[str]:
    parts = []
    height = BAR * len(threads) + GAP
    for number, row in enumerate(rows):
        y = top + GAP + number * height
        parts.append(text(LEFT - 8, y + height / 2, row.name, "end"))
        for which, count in enumerate(threads):
            if count in row.ratios():
                parts += bar(scale, y + which * BAR, row.ratios()[count], count, COLOURS[which])
    return parts


def strip(scale: Scale, rows: Sequence[Row], threads: Sequence[int], top: float) -> list[str]:
    """A dot for each generated graph, the slowest on top."""
    parts = [text(LEFT - 8, top + STRIP / 2, f"{len(rows)} generated graphs", "end")]
    for which, count in enumerate(threads):
        ordered = sorted((row.ratios()[count], row.name) for row in rows if count in row.ratios())
        for number, (ratio, name) in enumerate(ordered):
            y = top + GAP + (STRIP - 2 * GAP) * number / max(len(ordered) - 1, 1)
            fill = SLOW_COLOUR if ratio < SLOW else COLOURS[which]
            parts.append(f"<g><title>{name}, {counted(count, 'thread')}: {ratio:.3f}</title>"
                         f'<circle cx="{scale.x(ratio):.1f}" cy="{y:.1f}" r="2.5" fill="{fill}" '
                         'fill-opacity="0.7"/></g>')
    return parts


def legend(title: str, threads: Sequence[int]) -> list[str]:
    parts = [text(LEFT, 24, title, "start", 14),
             text(LEFT, 42, "stock ONNX Runtime's time over that with castor; red: slower than "
                  f"{SLOW}", "start")]
    for which, count in enumerate(threads):
        x = LEFT + WIDTH - 90 * (len(threads) - which)
        parts.append(f'<rect x="{x}" y="33" width="10" height="10" fill="{COLOURS[which]}"/>')
        parts.append(text(x + 15, 42, counted(count, "thread"), "start"))
    return parts


def svg(title: str, rows: Sequence[Row], threads: Sequence[int]) -> str:
    models = [row for row in rows if not row.is_generated]
    generated = [row for row in rows if row.is_generated]
    scale = Scale([ratio for row in rows for ratio in row.ratios().values()])
    middle = TOP + len(models) * (BAR * len(threads) + GAP) + GAP
    bottom = middle + (STRIP if generated else 0)
    width, height = LEFT + WIDTH + RIGHT, bottom + GAP
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
             f'viewBox="0 0 {width} {height}" font-family="sans-serif">',
             f'<rect width="{width}" height="{height}" fill="#fff"/>', *legend(title, threads),
             *axis(scale, TOP, bottom), *bars(scale, models, threads, TOP)]
    if generated:
        parts += strip(scale, generated, threads, middle)
    return "\n".join(parts + ["</svg>", ""])
