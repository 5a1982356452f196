# SPDX-License-Identifier: Apache-2.0
"""Files that are written under a temporary name, and renamed when they are whole."""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager
from pathlib import Path
from typing import Iterator

from castor.checkpoint.errors import CheckpointError

SUFFIX = ".part"


def sync_directory(path: Path) -> None:
    """Makes renames in a directory durable."""
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


@contextmanager
def unfinished_file(path: Path) -> Iterator[int]:
    """The descriptor of `path`.part, whose data reach the disk at the end; removed on failure.

    What an interrupted process left under that name is replaced. The lock shows one that is
    still at work.
    """
    partial = path.with_name(path.name + SUFFIX)
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    file = os.open(partial, flags, 0o666)
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CheckpointError(f"{partial}: another process is writing it") from None
        try:
            # The system begins to write a file that was cut to nothing when it is closed.
            if os.fstat(file).st_size:
                os.ftruncate(file, 0)
            yield file
            os.fsync(file)
        except BaseException:
            os.unlink(partial)
            raise
    finally:
        os.close(file)


def publish(path: Path) -> None:
    """Gives a whole file its name."""
    os.replace(path.with_name(path.name + SUFFIX), path)
    sync_directory(path.parent)
