"""weights of many steps -> their exponential moving average (EMA), which is validated, kept and answers.

The newest weights come in with the weight (1 - decay) / (1 - decay^t) at step t: the moving average corrected for its
start. At first that is the plain mean of all weights so far.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn


class ExponentialMovingAverage:
    """The moving average of a network's weights; the network itself keeps the trained weights."""

    def __init__(self, network: nn.Module, decay: float) -> None:
        self.decay = decay
        self._network = network
        self.weights = {name: weight.detach().clone() for name, weight in network.named_parameters()}

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Take in the weights after step number `step`, counted from 1."""
        newest = (1 - self.decay) / (1 - self.decay**step)
        for name, weight in self._network.named_parameters():
            self.weights[name].lerp_(weight, newest)

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Inside, the network has the averaged weights; afterwards its own again, bit for bit."""
        own = {name: weight.detach().clone() for name, weight in self._network.named_parameters()}
        self._load(self.weights)
        try:
            yield
        finally:
            self._load(own)

    def restore(self, weights: Mapping[str, Tensor]) -> None:
        """Continue from a saved average; a run that kept none until now starts with its present weights."""
        for name, weight in self._network.named_parameters():
            self.weights[name].copy_(weights.get(name, weight.detach()))

    @torch.no_grad()
    def _load(self, weights: Mapping[str, Tensor]) -> None:
        for name, weight in self._network.named_parameters():
            weight.copy_(weights[name])
