# SPDX-License-Identifier: Apache-2.0
"""Exceptions: castor's status, message and position."""

from __future__ import annotations

from typing import Dict, Type


class Error(Exception):
    """A call of castor that failed.

    `status` is the name that the C API has for it. `line` and `column` count from 1 in the text
    that was compiled, which the message begins with; both are 0 where no text is to blame.
    """

    status = "internal"

    def __init__(self, message: str, line: int = 0, column: int = 0) -> None:
        super().__init__(message)
        self.message = message
        self.line = line
        self.column = column


class InvalidTextError(Error, ValueError):
    """A text does not parse."""

    status = "invalid_text"


class InvalidFunctionError(Error, ValueError):
    """A function breaks a rule of types, shapes or attributes."""

    status = "invalid_function"


class InvalidArgumentError(Error, ValueError):
    """Arrays, shapes, strides or options that do not fit."""

    status = "invalid_argument"


class UnsupportedError(Error, NotImplementedError):
    """Well formed, but not implemented, here or on this machine."""

    status = "unsupported"


class OutOfMemoryError(Error, MemoryError):
    """An allocation was refused."""

    status = "out_of_memory"


class ExecutableMemoryError(Error, OSError):
    """The system refuses memory that can be executed."""

    status = "executable_memory"


class InputOutputError(Error, OSError):
    """A file cannot be read or written."""

    status = "io"


class InternalError(Error, RuntimeError):
    """A bug in castor."""

    status = "internal"


class LimitExceededError(Error, ValueError):
    """A text or function is larger than what castor takes."""

    status = "limit_exceeded"


BY_STATUS: Dict[int, Type[Error]] = {
    1: InvalidTextError,
    2: InvalidFunctionError,
    3: InvalidArgumentError,
    4: UnsupportedError,
    5: OutOfMemoryError,
    6: ExecutableMemoryError,
    7: InputOutputError,
    8: InternalError,
    9: LimitExceededError,
}
"""The class for each castor_status."""
