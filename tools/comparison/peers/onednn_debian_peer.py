# SPDX-License-Identifier: Apache-2.0
"""oneDNN of Debian's libdnnl-dev, which is older, but hands its work to no queue."""
from __future__ import annotations

from ..onednn import build
from .base import Peer
from .onednn_peer import OnednnPeer


def make(threads: int) -> Peer:
    return OnednnPeer(build.of_debian())
