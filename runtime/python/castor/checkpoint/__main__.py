# SPDX-License-Identifier: Apache-2.0
"""python -m castor.checkpoint is castor-quantize."""

import sys

from castor.checkpoint.cli import main

sys.exit(main())
