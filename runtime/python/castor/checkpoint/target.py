# SPDX-License-Identifier: Apache-2.0
"""Files that are written under a temporary name, and renamed when they are whole."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
from contextlib import contextmanager, suppress
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
    """This is the file of `path` under its temporary name.

    It `keeps` what it has for the next run, if this one fails.
    """

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self.descriptor = descriptor
        self.keeps = os.fstat(descriptor).st_size > 0

    def clear(self) -> None:
        """Removes what an interrupted process left."""
        # The system begins to write a file that was cut to nothing when it is closed.
        if os.fstat(self.descriptor).st_size:
            os.ftruncate(self.descriptor, 0)
        self.keeps = False

    def publish(self) -> None:
        """Gives a whole file, which is on the disk, its name."""
        os.replace(_partial(self.path), self.path)
        self.keeps = True  # what has the temporary name from now on is another process's
        sync_directory(self.path.parent)


def _partial(path: Path) -> Path:
    return path.with_name(path.name + SUFFIX)


def _lock(descriptor: int, path: Path) -> None:
    """Refuses what another process is writing; the lock ends with its process at the latest."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise CheckpointError(f"{path}: another process is writing it") from None


def _is_open_as(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


@contextmanager
def locked_directory(path: Path) -> Iterator[None]:
    """Holds the lock of a directory, so that no other process converts to it."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with suppress(OSError):  # NFS locks no directories; each file there still has its lock
            _lock(descriptor, path)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def unfinished_file(path: Path) -> Iterator[UnfinishedFile]:
    """Opens `path`.part, which this process alone writes until it is published."""
    partial = _partial(path)
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(partial, flags, 0o666)
    try:
        _lock(descriptor, partial)
        if not _is_open_as(partial, descriptor):  # it was published since it was opened
            raise CheckpointError(f"{path}: another process has written it")
        file = UnfinishedFile(path, descriptor)
        try:
            yield file
        except BaseException:
            if not file.keeps:
                partial.unlink(missing_ok=True)
            raise
    finally:
        os.close(descriptor)
