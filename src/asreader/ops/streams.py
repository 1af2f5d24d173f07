"""Run work on side CUDA streams, overlapped with the current stream."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from types import TracebackType

import torch

HIGH_PRIORITY = -1


class SideStreams:
    """Named side streams. Work on them starts after what was on the current stream at the last `fork`.

    What passes from one stream to another must be held until they are joined, as they are at the end of `with`, also
    after an exception: a graph that is being captured could not be abandoned otherwise. On a CPU, and with `is_serial`,
    everything is done in order.
    """

    def __init__(self, device: torch.device, is_serial: bool) -> None:
        self._device = None if device.type != "cuda" or is_serial else device
        self._after: torch.cuda.Event | None = None
        self._used: dict[str, torch.cuda.Stream] = {}  # no other may be waited for while a graph is captured
        self.fork()

    def __enter__(self) -> SideStreams:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, at: TracebackType | None
    ) -> None:
        self.join()

    @contextmanager
    def run(self, name: str, after: str | None = None) -> Iterator[None]:
        """Work inside goes to the side stream of this name, after that of another name if one is given."""
        if self._device is None:
            yield
            return
        assert self._after is not None
        side = _side_stream(self._device, torch.cuda.current_stream(self._device).stream_id, name)
        side.wait_event(self._after)
        if after is not None:
            side.wait_stream(self._used[after])
        self._used[name] = side
        with torch.cuda.stream(side):
            yield

    def fork(self) -> None:
        """From here on, side streams wait for what is on the current stream so far."""
        if self._device is not None:
            self._after = torch.cuda.current_stream(self._device).record_event()

    def join(self, *names: str) -> None:
        """The current stream waits for the side streams of these names, or for all."""
        for name in names or self._used:
            if name in self._used:
                torch.cuda.current_stream(self._device).wait_stream(self._used[name])


@cache
def _side_stream(device: torch.device, current: int, name: str) -> torch.cuda.Stream:
    return torch.cuda.Stream(device, priority=HIGH_PRIORITY)
