"""Ctrl-C or a polite kill -> a wish to stop, met where it does no harm; a second one ends the program at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def graceful_shutdown(stop: Callable[[], None]) -> Iterator[None]:
    """Inside, the first signal calls `stop`, which should only take note: an exception raised between any two
    instructions could leave locks of libraries closed for ever."""
    if threading.current_thread() is not threading.main_thread():  # only the main thread may set handlers
        yield
        return
    kinds = (signal.SIGINT, signal.SIGTERM)
    previous = {kind: signal.getsignal(kind) for kind in kinds}

    def handler(kind: int, frame: FrameType | None) -> None:
        signal.signal(kind, previous[signal.Signals(kind)])
        stop()

    try:
        for kind in kinds:
            signal.signal(kind, handler)
        yield
    finally:
        for kind in kinds:
            signal.signal(kind, previous[kind])
