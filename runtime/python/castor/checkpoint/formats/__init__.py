# SPDX-License-Identifier: Apache-2.0
"""The formats: how a weight is encoded, what is stored of it, and how it is decoded."""
