# SPDX-License-Identifier: Apache-2.0
"""What `castor onnx` takes of tools/ort-compare's models: coverage_test.py CASTOR.

Convolutional networks are taken whole, in each form of onnxruntime.quantization. Of transformers
only nodes that compute with floats alone are left.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter

from host import ROOT

sys.path.insert(0, str(ROOT / "tools"))
from ort import quantized  # noqa: E402 - it is found by the line before

WHOLE = ("resnet50", "mobilenetv2")
# Operators of floats, none of which castor has; QLinearSoftmax is a Softmax between two casts. Of
# products, those of two activations are not quantized dynamically.
FLOATS = {"Erf", "LayerNormalization", "QLinearSoftmax", "Softmax", "Transpose"}
FLOATS_OF_DYNAMIC = FLOATS | {"MatMul"}
LEFT = re.compile(r"^node \S+ \((\w+)\): left: (.*)$", re.MULTILINE)
TAKEN = re.compile(r"^(\d+) of (\d+) nodes taken", re.MULTILINE)


def check(castor: str, name: str) -> list[str]:
    """Prints what is taken of one model; returns what is wrong."""
    path = quantized.model_path(name)
    text = subprocess.run([castor, "onnx", str(path)], check=True, capture_output=True,
                          text=True).stdout
    counts = TAKEN.search(text)
    if counts is None:
        return [f"{name}: castor onnx counts no nodes"]
    left = LEFT.findall(text)
    print(f"{name}: {counts[0]}; left: {dict(Counter(operator for operator, _ in left)) or 'none'}")
    if len(left) != int(counts[2]) - int(counts[1]):
        return [f"{name}: {len(left)} nodes are listed as left"]
    may_be_left = (set() if name.startswith(WHOLE)
                   else FLOATS_OF_DYNAMIC if "_dynamic" in name else FLOATS)
    return [f"{name}: {operator} is left: {reason}" for operator, reason in left
            if operator not in may_be_left]


def main() -> None:
    wrong = [line for name in quantized.names() for line in check(sys.argv[1], name)]
    sys.exit("\n".join(wrong) if wrong else 0)


if __name__ == "__main__":
    main()
