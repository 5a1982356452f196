# SPDX-License-Identifier: Apache-2.0
"""oneDNN, which has no Python package of its own: a small library of ours between."""
