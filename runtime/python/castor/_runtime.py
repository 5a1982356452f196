# SPDX-License-Identifier: Apache-2.0
"""Runtimes and pools of threads of this process: one for each use, made when it is first needed."""

from __future__ import annotations

import operator
import os
import threading
from ctypes import byref, sizeof
from typing import Any, Dict, List, Optional, Tuple

from castor import _library
from castor._structures import RuntimeOptions
from castor.errors import InvalidArgumentError, UnsupportedError

MAX_THREADS = 256
"""The largest pool of runtime/threads/thread_pool.cpp."""

_lock = threading.Lock()
_runtimes: Dict[Tuple[Optional[str], bool], _library.Handle] = {}
_pools: List[_library.Handle] = []
_executors: Dict[int, int] = {}  # by the number of threads that was asked for


def tiers() -> Dict[str, int]:
    """The numbers of all tiers, by name."""
    numbers = {}
    for number in range(1, 64):
        name = _library.tier_name(number)
        if name is None:
            break
        numbers[_library.decoded(name)] = number
    return numbers


def tier_number(isa: Optional[str]) -> int:
    """The number of a tier; 0 where none is asked for."""
    if isa is None:
        return 0
    number = tiers().get(isa)
    if number is None:
        raise InvalidArgumentError(f"isa {isa!r}, expected {', '.join(tiers())}")
    return number


def runtime(isa: Optional[str] = None, interpret: bool = False) -> _library.Handle:
    """The runtime for a tier, by default the machine's best, or that of the interpreter."""
    key = (isa, interpret)
    made = _runtimes.get(key)
    if made is not None:
        return made
    with _lock:
        if key not in _runtimes:
            options = RuntimeOptions(struct_size=sizeof(RuntimeOptions))
            options.tier = tier_number(isa)
            options.interpret = int(interpret)
            handle = _library.Handle(_library.runtime_destroy)
            _library.runtime_create(byref(options), byref(handle.pointer))
            _runtimes[key] = handle
        return _runtimes[key]


def runnable_tiers() -> List[str]:
    """The tiers that this machine runs."""
    found = []
    for isa in tiers():
        try:
            runtime(isa)
        except UnsupportedError:
            continue
        found.append(isa)
    return found


def executor(threads: int) -> int:
    """The address of an executor of that many threads; 0: one for each core."""
    made = _executors.get(threads) if type(threads) is int else None
    if made is None:
        threads = _number_of_threads(threads)
        with _lock:
            if threads not in _executors:
                handle = _library.Handle(_library.thread_pool_destroy)
                _library.thread_pool_create(threads, byref(handle.pointer))
                _pools.append(handle)
                _executors[threads] = int(_library.thread_pool_executor(handle.pointer))
            made = _executors[threads]
    return made


def _number_of_threads(given: Any) -> int:
    """The number as Python's own integer. ctypes would drop bits of one that is too large."""
    expected = f"expected 1 to {MAX_THREADS}, or 0 for one a core"
    try:
        number = operator.index(given)
    except TypeError:
        raise TypeError(f"threads is {given!r}; {expected}") from None
    if not 0 <= number <= MAX_THREADS:
        raise InvalidArgumentError(f"a thread pool of {number} threads; {expected}")
    return number


def _forget_threads() -> None:
    """In a forked child, which has none of its parent's threads and must not wait for them."""
    global _lock
    _lock = threading.Lock()
    for pool in _pools:
        pool.pointer.value = None
    _pools.clear()
    _executors.clear()


os.register_at_fork(after_in_child=_forget_threads)
