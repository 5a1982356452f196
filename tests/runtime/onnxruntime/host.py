# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime's wheel: where this interpreter has none, the script starts again in one that has.

Import it before all else that only that interpreter has.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PROVIDER = "CastorExecutionProvider"
_ENVIRONMENT = ROOT / "build" / "ort-venv" / "bin" / "python"

try:
    import onnxruntime
except ImportError:
    if not _ENVIRONMENT.exists() or os.environ.get("CASTOR_PLUGIN_TEST"):
        sys.exit("no ONNX Runtime: tools/ort/setup installs its wheel in build/ort-venv")
    os.execve(_ENVIRONMENT, [str(_ENVIRONMENT), "-B", *sys.argv], os.environ
              | {"CASTOR_PLUGIN_TEST": "1"})

__all__ = ["PROVIDER", "ROOT", "onnxruntime"]
