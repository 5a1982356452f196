# SPDX-License-Identifier: Apache-2.0
"""Quantized models and how to compare ONNX Runtime with and without castor; see README.md."""
