# SPDX-License-Identifier: Apache-2.0
"""Settings of all tests: the same examples in every run, many more with CASTOR_LONG=1."""

import os

import hypothesis

hypothesis.settings.register_profile(
    "castor",
    derandomize=True,
    deadline=None,
    database=None,
    max_examples=2000 if os.environ.get("CASTOR_LONG") else 20,
)
hypothesis.settings.load_profile("castor")
