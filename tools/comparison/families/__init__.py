# SPDX-License-Identifier: Apache-2.0
"""The families of tasks: each module has tasks(quick), which gives them one by one."""
