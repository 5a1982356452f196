# SPDX-License-Identifier: Apache-2.0
"""What is made of the measured figures: a table, a file of JSON, charts, a comparison of runs."""
