"""Engine `plain`: batches made on the host, autograd, torch.optim; any reader on any device, one at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor

from asreader.batches.host import Batcher
from asreader.batches.plan import StepPlan
from asreader.inference.reader import Reader
from asreader.inference.store_evaluation import Evaluation
from asreader.ops.keyed_dropout import dropout_key
from asreader.readers import Forward, Losses
from asreader.training import schedule
from asreader.training.engines import Engine, JobSpec, PendingLosses
from asreader.training.job import Job
from asreader.training.ranks import Ranks


def supports(spec: JobSpec) -> str | None:
    """Everything."""
    return None


@contextmanager
def open_engine(spec: JobSpec) -> Iterator[Engine]:
    """In this process alone."""
    yield PlainEngine("plain", spec, spec.device, Ranks())


class PlainEngine:
    """One step after the other; with several ranks each takes a shard of every batch."""

    max_jobs = 1
    max_steps = 1

    def __init__(self, name: str, spec: JobSpec, device: torch.device, ranks: Ranks) -> None:
        self.name, self.device, self._ranks = name, device, ranks
        self._precision = spec.precision
        self.is_main = ranks.is_main

    def attach(self, jobs: Sequence[Job]) -> None:
        """Make what steps of this job need; its moments become the optimizer's state."""
        (self._job,) = jobs
        options, data, network = self._job.settings, self._job.data, self._job.network
        self._batcher = Batcher(
            data.train, data.vocabulary, question_at=options.data.question_at, anonymise=options.data.anonymise
        )
        self._optimizer = torch.optim.Adam(
            network.parameters(), options.train.learning_rate, fused=self.device.type in ("cpu", "cuda")
        )
        for parameter, moments in zip(network.parameters(), self._job.moments.values(), strict=True):
            self._optimizer.state[parameter] = vars(moments)
        self._reader = Reader(
            network,
            data.vocabulary,
            question_at=options.data.question_at,
            device=self.device,
            precision=self._precision,
        )

    def run(self, plans: Sequence[Sequence[StepPlan]], should_stop: Callable[[], bool]) -> PendingLosses:
        """Take the steps."""
        losses = [self._take_step(plan) for (plan,) in plans]
        return PendingLosses(torch.stack(losses)[:, None])

    def _take_step(self, plan: StepPlan) -> Tensor:
        """One batch: loss, gradients, clipping, Adam."""
        job, options = self._job, self._job.settings.train
        job.network.train()
        loss, mean = self._ranks.average_losses(self._compute_losses(plan))
        self._optimizer.zero_grad(set_to_none=True)
        if loss.requires_grad:  # a rank may have no question of a short batch
            loss.backward()
        self._ranks.add_gradients(job.network)
        torch.nn.utils.clip_grad_norm_(job.network.parameters(), options.clip)
        for group in self._optimizer.param_groups:
            group["lr"] = schedule.compute_learning_rate(options, plan.step, job.total_steps)
        self._optimizer.step()
        if job.ema is not None:
            job.ema.update(plan.step + 1)
        return mean

    def _compute_losses(self, plan: StepPlan) -> Losses:
        examples = self._ranks.shard(plan.examples)
        if not len(examples):
            nothing = torch.zeros(0, device=self.device)
            return Losses(nothing, nothing.bool())
        batch = self._batcher.make_batch(examples, plan).to(self.device)
        key = torch.tensor(self._ranks.own_key(plan.key), device=self.device)
        with self._reader.autocast(), dropout_key(key):
            reading = Forward(self._job.network)(batch)
        teacher = self._job.data.teacher
        if teacher is None:
            losses: Losses = reading.compute_losses(batch.answers)
        else:
            targets = teacher.look_up(np.asarray(examples), batch.candidate_count).to(self.device)
            losses = reading.compute_losses(batch.answers, targets, teacher.weight)
        return losses

    def evaluate(self, jobs: Sequence[Job], *, averaged: bool) -> list[Evaluation]:
        """Read the validation data with the present weights or their average."""
        (job,) = jobs
        assert job.data.valid is not None
        if not averaged:
            return [self._reader.evaluate(job.data.valid)]
        with job.averaged():
            return [self._reader.evaluate(job.data.valid)]

    def synchronize(self) -> None:
        """No-op: weights and moments are always complete."""

    def any(self, flag: bool) -> bool:
        """Whether any rank has raised it."""
        return self._ranks.any(flag)

    def broadcast(self, values: Sequence[float]) -> list[float]:
        """The values of the main rank, in all ranks."""
        return self._ranks.broadcast(values)
