"""Work on two streams of a device: what is done here, and what is done beside it."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

import torch


class Beside:
    """`with` it, work goes to another stream of the device, which runs beside this one.

    It goes after what was there when this was made, or when `wait` was called last. What passes from one stream to the
    other must be held until they are joined. On a CPU everything is done in order, and where `alone` is asked for.
    """

    def __init__(self, device: torch.device, alone: bool) -> None:
        self._streams: tuple[torch.cuda.Stream, torch.cuda.Stream] | None = None
        self._entered: AbstractContextManager[Any] = nullcontext()
        self._after: torch.cuda.Event | None = None  # what the next work beside waits for
        self._used = False  # a stream that nothing was given to must not be waited for while a graph is recorded
        if device.type == "cuda" and not alone:
            here = torch.cuda.current_stream(device)
            self._streams = here, _other_stream(device, here.stream_id)
        self.wait()

    def __enter__(self) -> None:
        if self._streams is not None:
            _, aside = self._streams
            if self._after is not None:
                aside.wait_event(self._after)
            self._after, self._used = None, True
            self._entered = torch.cuda.stream(aside)
        self._entered.__enter__()

    def __exit__(self, *raised: Any) -> None:
        self._entered.__exit__(*raised)

    def wait(self) -> None:
        """What is done beside from here on waits for what there is here so far."""
        if self._streams is not None:
            here, _ = self._streams
            self._after = here.record_event()

    def join(self) -> None:
        """What comes here from now on waits for what was done beside."""
        if self._streams is not None and self._used:
            here, aside = self._streams
            here.wait_stream(aside)


@cache
def _other_stream(device: torch.device, beside: int) -> torch.cuda.Stream:
    return torch.cuda.Stream(device)
