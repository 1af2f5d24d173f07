"""jobs of equal shape -> their weights, Adam moments and averages side by side in one tensor for each parameter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from asreader.ops.row_adam import StackedParameter
from asreader.training.ema import ExponentialMovingAverage
from asreader.training.job import AdamMoments


@runtime_checkable
class StackableJob(Protocol):
    """The part of a Job that is stacked."""

    network: nn.Module
    moments: dict[str, AdamMoments]
    ema: ExponentialMovingAverage | None


class ParameterStack:
    """The tensors of N jobs; the jobs' own tensors become views of them, so writing there writes here.

    With `paired`, both directions of a GRU's parameter lie side by side, as [N, 2, ...], under the name of the first.
    """

    def __init__(self, jobs: Sequence[StackableJob], *, paired: bool) -> None:
        network = jobs[0].network
        self.readers, self.device = len(jobs), next(network.parameters()).device
        self.steps: Float[Tensor, " N"] = torch.stack([_count_steps(job) for job in jobs]).to(self.device)
        names = dict(network.named_parameters())
        self.parameters: dict[str, StackedParameter] = {}
        for name, parameter in names.items():
            if paired and name.endswith("_reverse"):
                continue
            directions = [name, f"{name}_reverse"] if paired and f"{name}_reverse" in names else [name]
            lead = (self.readers, 2) if len(directions) == 2 else (self.readers,)
            self.parameters[name] = self._stack(jobs, directions, (*lead, *parameter.shape))

    def _stack(self, jobs: Sequence[StackableJob], names: list[str], shape: tuple[int, ...]) -> StackedParameter:
        has_ema = jobs[0].ema is not None
        weights, first, second = (torch.empty(shape, device=self.device) for _ in range(3))
        average = torch.empty(shape, device=self.device) if has_ema else None
        for number, job in enumerate(jobs):
            for direction, name in enumerate(names):
                at = (number, direction) if len(names) == 2 else (number,)
                _move(job, name, weights[at], first[at], second[at], None if average is None else average[at])
                job.moments[name].step = self.steps[number]
        return StackedParameter(weights, first, second, average)

    def weights(self, *, averaged: bool) -> dict[str, Tensor]:
        """The trained weights, or their moving averages where there are any."""
        return {
            name: own.average if averaged and own.average is not None else own.weights.detach()
            for name, own in self.parameters.items()
        }


def _count_steps(job: StackableJob) -> Tensor:
    return next(iter(job.moments.values())).step.detach().float().reshape(())


@torch.no_grad()
def _move(job: StackableJob, name: str, weight: Tensor, first: Tensor, second: Tensor, average: Tensor | None) -> None:
    """Copy one parameter of a job into the stack and let the job look at it there."""
    parameter, moments = job.network.get_parameter(name), job.moments[name]
    for target, source in ((weight, parameter), (first, moments.exp_avg), (second, moments.exp_avg_sq)):
        target.copy_(source)
    parameter.data, moments.exp_avg, moments.exp_avg_sq = weight, first, second
    if average is not None and job.ema is not None:
        average.copy_(job.ema.weights[name])
        job.ema.weights[name] = average
