"""SIGINT or SIGTERM -> graceful shutdown at the next safe point; a second signal ends the program at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def graceful_shutdown(request_stop: Callable[[], None]) -> Iterator[None]:
    """Inside the block the first signal calls `request_stop`, which should only set a flag.

    An exception raised between two arbitrary instructions could leave a lock of a library held for ever.
    """
    if threading.current_thread() is not threading.main_thread():  # only the main thread may set handlers
        yield
        return
    kinds = (signal.SIGINT, signal.SIGTERM)
    previous = {kind: signal.getsignal(kind) for kind in kinds}

    def handle_signal(kind: int, frame: FrameType | None) -> None:
        signal.signal(kind, previous[signal.Signals(kind)])
        request_stop()

    try:
        for kind in kinds:
            signal.signal(kind, handle_signal)
        yield
    finally:
        for kind in kinds:
            signal.signal(kind, previous[kind])
