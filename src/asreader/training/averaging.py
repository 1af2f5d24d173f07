"""weights of many steps -> their exponential moving average: what is validated, kept and answers, not what is trained.

The newest weights come in with the share (1 - keep) / (1 - keep^t) at step t: the moving average corrected for its
beginning. At first that is the plain mean of all weights so far, so an early average is as sane as a late one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn


class Average:
    """The moving average of a network's weights, beside the weights themselves."""

    def __init__(self, network: nn.Module, keep: float) -> None:
        self.keep, self.used = keep, False
        self._network = network
        self.weights = {name: weight.detach().clone() for name, weight in network.named_parameters()}

    @torch.no_grad()
    def add(self, step: int) -> None:
        """Take in the weights that step number `step`, counted from 1, has left."""
        share = (1 - self.keep) / (1 - self.keep**step)
        for name, weight in self._network.named_parameters():
            self.weights[name].lerp_(weight, share)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Inside, the network has the averaged weights; afterwards its own again, bit for bit."""
        own = {name: weight.detach().clone() for name, weight in self._network.named_parameters()}
        self._fill(self.weights)
        self.used = True
        try:
            yield
        finally:
            self.used = False
            self._fill(own)

    def restore(self, weights: Mapping[str, Tensor]) -> None:
        """Go on from an average that was saved; a run that kept none until now begins with its present weights."""
        for name, weight in self._network.named_parameters():
            self.weights[name].copy_(weights.get(name, weight.detach()))

    @torch.no_grad()
    def _fill(self, weights: Mapping[str, Tensor]) -> None:
        for name, weight in self._network.named_parameters():
            weight.copy_(weights[name])
