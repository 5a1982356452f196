# SPDX-License-Identifier: Apache-2.0
"""What a peer is to the runner."""
from __future__ import annotations

from collections.abc import Callable

from ..tasks import Lacking, Prepared, Task


class Peer:
    """Prepares tasks by methods that are named after their kinds: a kind without one is lacking."""
    name = ""
    version = ""
    is_threaded = True  # whether it uses more than one thread where it is given more

    def prepare(self, task: Task) -> Prepared:
        """The call that is measured; raises Lacking with what is missing."""
        method: Callable[[Task], Prepared] | None = getattr(self, f"do_{task.kind}", None)
        if method is None:
            raise Lacking(f"no {task.kind}")
        return method(task)

    def creation(self, task: Task) -> Callable[[], object]:
        """Makes what the task needs to run, each time it is called; raises Lacking."""
        raise Lacking(f"compiles no {task.kind}")
