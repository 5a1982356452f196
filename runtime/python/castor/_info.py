# SPDX-License-Identifier: Apache-2.0
"""What runs here."""

from __future__ import annotations

import os
from typing import Any, Dict

from castor import _library, _runtime
from castor._element_types import element_types


def info() -> Dict[str, Any]:
    """The version, the library's file, the tier in use and those of the machine, element types.

    >>> sorted(info())
    ['element_types', 'isa', 'isas', 'library', 'threads', 'version']
    """
    number = _library.runtime_tier(_runtime.runtime().pointer)
    return {
        "version": _library.decoded(_library.version_string()),
        "library": os.path.abspath(_library.library._name),
        "isa": _library.decoded(_library.tier_name(number)),
        "isas": _runtime.runnable_tiers(),
        "threads": _cores(),
        "element_types": [element.name for element in element_types()],
    }


def _cores() -> int:
    """Those that the process may use; PyPy knows only those of the machine."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
