# SPDX-License-Identifier: Apache-2.0
"""Finds oneDNN's headers and library, and compiles peer.cpp against them; nothing of oneDNN."""
from __future__ import annotations

import dataclasses
import hashlib
import os
import pathlib
import subprocess
import sys

from ..environment import ROOT

FOLDER = pathlib.Path(__file__).resolve().parent
SOURCES = ("convolution.cpp", "primitives.cpp")
HEADER = "peer.hpp"
GIVEN = "CASTOR_PEER_ONEDNN"
"""The variable that names a folder with include/ and lib/, instead of the environment's."""


@dataclasses.dataclass(frozen=True)
class Location:
    """Where a oneDNN is installed."""
    include: pathlib.Path
    library: pathlib.Path


def of_prefix(prefix: pathlib.Path) -> Location:
    """The oneDNN of a folder with include/ and lib/."""
    include = prefix / "include"
    if not (include / "dnnl.hpp").exists():
        raise ImportError(f"no dnnl.hpp in {include}")
    folders = [prefix / "lib", prefix / "lib" / "x86_64-linux-gnu", prefix / "lib64"]
    found = [path for folder in folders for path in sorted(folder.glob("libdnnl.so.[0-9]"))]
    if not found:
        raise ImportError(f"no libdnnl.so in {prefix / 'lib'}")
    return Location(include, found[-1])


def of_environment() -> Location:
    return of_prefix(pathlib.Path(os.environ.get(GIVEN) or sys.prefix))


def of_debian() -> Location:
    return of_prefix(pathlib.Path("/usr"))


def compiled(location: Location) -> pathlib.Path:
    """Our library for that oneDNN, which is compiled where it is not there yet."""
    sources = [FOLDER / name for name in SOURCES]
    content = b"".join(path.read_bytes() for path in (*sources, FOLDER / HEADER))
    key = hashlib.sha256(content + str(location).encode()).hexdigest()[:16]
    made = ROOT / "build" / "peers" / f"onednn-{key}.so"
    if made.exists():
        return made
    made.parent.mkdir(parents=True, exist_ok=True)
    temporary = made.with_suffix(f".{os.getpid()}")
    include = [] if str(location.include) == "/usr/include" else ["-isystem",
                                                                  str(location.include)]
    # What oneDNN's own library needs is found when it is loaded.
    command = ["c++", "-std=c++17", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", *include,
               *map(str, sources), "-o", str(temporary), str(location.library),
               f"-Wl,-rpath,{location.library.parent}", "-Wl,--allow-shlib-undefined"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ImportError(f"{' '.join(command)}: {done.stderr.splitlines()[:1]}")
    os.replace(temporary, made)
    return made
