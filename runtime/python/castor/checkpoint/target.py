# SPDX-License-Identifier: Apache-2.0
"""Files that are written under a temporary name, and renamed when they are whole."""

from __future__ import annotations

import ctypes
import errno
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


_UNSUPPORTED = (errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL, errno.ENODEV)


def preallocate(file: int, size: int) -> None:
    """Reserves room for a whole file, so that a full disk is told before anything is computed.

    Writes take less time then (ext4: two thirds for MXFP4). Where the system cannot, nothing is
    reserved; posix_fallocate would write zeros instead.
    """
    fallocate = getattr(ctypes.CDLL(None, use_errno=True), "fallocate", None)
    if fallocate is None or size == 0:
        return
    fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
    while fallocate(file, 0, 0, size):
        code = ctypes.get_errno()
        if code in _UNSUPPORTED:
            return
        if code != errno.EINTR:
            raise OSError(code, f"{os.strerror(code)}: {size} bytes for the output")


class UnfinishedFile:
    """A file under its temporary name. `keeps` what it has for the next run, if this one fails."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.keeps = False

    def clear(self) -> None:
        """Removes what an interrupted process left."""
        # The system begins to write a file that was cut to nothing when it is closed.
        if os.fstat(self.descriptor).st_size:
            os.ftruncate(self.descriptor, 0)


@contextmanager
def unfinished_file(path: Path) -> Iterator[UnfinishedFile]:
    """`path`.part, whose data reach the disk at the end.

    Its lock shows a process that is still at work.
    """
    partial = path.with_name(path.name + SUFFIX)
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(partial, flags, 0o666)
    file = UnfinishedFile(descriptor)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CheckpointError(f"{partial}: another process is writing it") from None
        try:
            yield file
            os.fsync(descriptor)
        except BaseException:
            if not file.keeps:
                os.unlink(partial)
            raise
    finally:
        os.close(descriptor)


def publish(path: Path) -> None:
    """Gives a whole file its name."""
    os.replace(path.with_name(path.name + SUFFIX), path)
    sync_directory(path.parent)
