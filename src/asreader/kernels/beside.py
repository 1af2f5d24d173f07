"""Work on two streams of a device: what is done here, and what is done beside it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from types import TracebackType

import torch

FIRST = -1
"""The priority of streams whose work goes before that of ordinary ones."""


class Beside:
    """Work that goes to other streams of the device, which run beside this one.

    It goes after what was there when this was made, or when `wait` was called last. What passes from one stream to
    another must be held until they are joined, as they are at the end of `with`, whatever happens there: a graph that
    is being recorded could not be given up otherwise. On a CPU, and where `alone` is asked for, all is done in order.
    """

    def __init__(self, device: torch.device, alone: bool) -> None:
        self._device = None if device.type != "cuda" or alone else device
        self._after: torch.cuda.Event | None = None
        self._used: dict[str, torch.cuda.Stream] = {}  # no other may be waited for while a graph is recorded
        self.wait()

    def __enter__(self) -> Beside:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, at: TracebackType | None
    ) -> None:
        self.join()

    @contextmanager
    def work(self, name: str, after: str | None = None) -> Iterator[None]:
        """What is done in here is done beside, after what was done under the same name, and perhaps another."""
        if self._device is None:
            yield
            return
        assert self._after is not None
        aside = _other_stream(self._device, torch.cuda.current_stream(self._device).stream_id, name)
        aside.wait_event(self._after)
        if after is not None:
            aside.wait_stream(self._used[after])
        self._used[name] = aside
        with torch.cuda.stream(aside):
            yield

    def wait(self) -> None:
        """What is done beside from here on waits for what there is here so far."""
        if self._device is not None:
            self._after = torch.cuda.current_stream(self._device).record_event()

    def join(self, *names: str) -> None:
        """What comes here from now on waits for what was done beside under these names, or at all."""
        for name in names or self._used:
            if name in self._used:
                torch.cuda.current_stream(self._device).wait_stream(self._used[name])


@cache
def _other_stream(device: torch.device, beside: int, name: str) -> torch.cuda.Stream:
    return torch.cuda.Stream(device, priority=FIRST)
