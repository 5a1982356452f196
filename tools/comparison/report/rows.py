# SPDX-License-Identifier: Apache-2.0
"""The records of a run, as rows with ratios."""
from __future__ import annotations

import dataclasses
import json
import math
import pathlib
from collections.abc import Iterable, Sequence

ONCE = ("compile time", "start-up")
"""Families that have other figures than times of calls."""


@dataclasses.dataclass(frozen=True)
class Figure:
    """A peer in a row: its time over castor's for the same."""
    peer: str
    ratio: float
    form: str
    differs: dict | None
    note: str

    @property
    def is_same(self) -> bool:
        return self.differs is None


def figure_of(name: str, entry: dict, castor_seconds: float) -> Figure:
    return Figure(name, entry["best"] / castor_seconds, entry.get("form", ""),
                  entry.get("differs"), entry.get("note", ""))


@dataclasses.dataclass(frozen=True)
class Row:
    """A task with a number of threads."""
    record: dict

    @property
    def family(self) -> str:
        return self.record["family"]

    @property
    def name(self) -> str:
        return self.record["name"]

    @property
    def threads(self) -> int:
        return self.record["threads"]

    def castor_seconds(self, form: str = "") -> float:
        return self.record["castor"][form]["best"]

    def castor_rate(self) -> float:
        """Work per second, in the record's unit, of the fastest form."""
        best = min(each["best"] for each in self.record["castor"].values())
        return self.record["work"] / best / 1e9

    def peer_rate(self, peer: str) -> float | None:
        entry = self.record["peers"].get(peer, {})
        return self.record["work"] / entry["best"] / 1e9 if "best" in entry else None

    def figures(self) -> list[Figure]:
        return [figure_of(name, entry, self.castor_seconds(entry.get("form", "")))
                for name, entry in self.record["peers"].items() if "best" in entry]

    def figure(self, peer: str) -> Figure | None:
        return next((each for each in self.figures() if each.peer == peer), None)


@dataclasses.dataclass(frozen=True)
class Run:
    """All rows, and the facts that stand above them."""
    facts: dict
    rows: tuple[Row, ...]

    def timed(self) -> list[Row]:
        return [row for row in self.rows if row.family not in ONCE]

    def of(self, family: str, threads: int | None = None) -> list[Row]:
        return [row for row in self.rows
                if row.family == family and threads in (None, row.threads)]

    def compiles(self) -> list[Row]:
        """Compile times as rows: cold and warm, castor's for the functions that the peer has."""
        return [Row({"family": row.family, "name": f"{row.name}, {kind}", "threads": row.threads,
                     "castor": {"": {"best": entry[f"castor_{kind}"]}},
                     "peers": {peer: {"best": entry[kind]}}})
                for row in self.of("compile time") for peer, entry in row.record["peers"].items()
                for kind in ("cold", "warm")]

    def families(self) -> list[str]:
        return list(dict.fromkeys(row.family for row in self.timed()))

    def threads(self) -> list[int]:
        return sorted({row.threads for row in self.timed()})

    def peers(self) -> list[str]:
        return list(self.facts["versions"])

    def failures(self) -> list[tuple[Row, str, str]]:
        return self._told("failed")

    def broken(self) -> list[tuple[Row, str, str]]:
        """What a peer says it has done, but has not."""
        return self._told("broken")

    def _told(self, key: str) -> list[tuple[Row, str, str]]:
        return [(row, name, entry[key]) for row in self.timed()
                for name, entry in row.record["peers"].items() if key in entry]


def geometric_mean(values: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))


def rounded(value: float) -> float:
    """Four digits, so that files stay small."""
    return float(f"{value:.4g}")


def compact(record: dict) -> dict:
    """The record as the file has it: what a peer lacks is left out."""
    made = dict(record)
    if "figures" in record:
        made["figures"] = {name: rounded(value) for name, value in record["figures"].items()}
        return made
    made["castor"] = {form: times(each) for form, each in record["castor"].items()}
    made["peers"] = {name: times(each) for name, each in record["peers"].items()
                     if "lacks" not in each}
    return made


def times(entry: dict) -> dict:
    """Without medians, which tell how quiet a run was, and without what is empty."""
    return {key: rounded(value) if isinstance(value, float) else value
            for key, value in entry.items() if key != "median" and value not in ("", None)}


def merged(facts: dict, parts: Iterable[dict]) -> Run:
    """One run of the parts that processes measured."""
    versions: dict[str, str] = {}
    missing: dict[str, str] = {}
    records: list[dict] = []
    for part in parts:
        versions |= part["versions"]
        missing |= part["missing"]
        records += map(compact, part["records"])
    return Run(facts | {"versions": versions, "missing": missing}, tuple(map(Row, records)))


def write(run: Run, path: pathlib.Path) -> None:
    """A record in each line."""
    lines = ",\n".join(json.dumps(row.record) for row in run.rows)
    path.write_text(f'{{"facts": {json.dumps(run.facts)},\n"records": [\n{lines}\n]}}\n',
                    encoding="utf-8")


def read(path: pathlib.Path) -> Run:
    found = json.loads(path.read_text(encoding="utf-8"))
    return Run(found["facts"], tuple(map(Row, found["records"])))
