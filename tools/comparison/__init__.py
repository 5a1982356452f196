# SPDX-License-Identifier: Apache-2.0
"""castor beside what others use, on the same tensors; see README.md."""
