"""jobs -> steps of all of them in the same launches: the engine behind `stacked` and `fused_attention_sum`.

What differs between the two is the StepComputation: how a prepared batch becomes losses and new weights.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from asreader.batches.batch import Batch
from asreader.batches.device import BatchShape, DeviceDataset, Unsupported, load_on_device
from asreader.batches.plan import StepPlan
from asreader.inference.reader import Reader
from asreader.inference.store_evaluation import Evaluation
from asreader.ops.row_adam import AdamRecipe
from asreader.readers import Reading
from asreader.system.progress import print_status
from asreader.training import schedule
from asreader.training.engines import JobSpec, PendingLosses
from asreader.training.job import Job
from asreader.training.stacking.captured_step import CapturedStep
from asreader.training.stacking.parameter_stack import ParameterStack
from asreader.training.stacking.stacked_evaluation import StackedEvaluator


@dataclass(frozen=True)
class StackedTask:
    """What a StepComputation needs to know."""

    stack: ParameterStack
    data: DeviceDataset
    recipe: AdamRecipe
    precision: torch.dtype
    network: torch.nn.Module  # of the first job: the shape of all
    teacher: Float[Tensor, "examples C"] | None = None
    teacher_weight: float = 0.0


@runtime_checkable
class StepComputation(Protocol):
    """How N readers learn from a batch each, without waiting for the device."""

    def prepare(self, order: Tensor, shape: BatchShape) -> Any: ...
    def learn(self, prepared: Any) -> Float[Tensor, " N"]: ...
    def read_batch(self, weights: dict[str, Tensor], batch: Batch, shape: BatchShape) -> Reading: ...
    def synchronize(self) -> None: ...


class StackedEngine:
    """Data set on the device, N readers in the same launches, CUDA graphs."""

    max_jobs = 1 << 16
    max_steps = 100  # while the device takes them, the host plans the next ones
    is_main = True

    def __init__(
        self, name: str, spec: JobSpec, make: Callable[[StackedTask], StepComputation], *, paired: bool
    ) -> None:
        self.name, self.device, self._precision = name, spec.device, spec.precision
        self._make, self._paired = make, paired
        self._data: DeviceDataset | None = None
        self._valid: DeviceDataset | None = None
        self._step: CapturedStep[Any] | None = None

    def attach(self, jobs: Sequence[Job]) -> None:
        """Rebuild the stacked weights and moments for the readers still training."""
        self.release()
        if self._data is None:
            self._load_data(jobs[0])
        assert self._data is not None
        self._jobs, options, teacher = list(jobs), jobs[0].settings.train, jobs[0].data.teacher
        targets = None
        if teacher is not None:
            targets = teacher.look_up(np.arange(len(jobs[0].data.train)), self._data.candidate_count).to(self.device)
        self._stack = ParameterStack(jobs, paired=self._paired)
        recipe = AdamRecipe(
            rates=[job.settings.train.learning_rate for job in jobs],
            factors=_rate_factors(jobs[0]),
            clip=options.clip,
            ema_decay=options.average,
        )
        self._computation = self._make(
            StackedTask(
                self._stack, self._data, recipe, self._precision, jobs[0].network, targets, options.teacher_weight
            )
        )
        self._batch_size = options.batch
        like = torch.zeros(len(jobs), options.batch + 2 + self._data.anonymous, dtype=torch.int32, device=self.device)
        self._step = CapturedStep(self._computation.prepare, self._computation.learn, like)

    def _load_data(self, job: Job) -> None:
        options, data = job.settings.data, job.data
        self._data = load_on_device(
            data.train,
            data.vocabulary,
            device=self.device,
            question_at=options.question_at,
            anonymise=options.anonymise,
        )
        if data.valid is not None:
            try:
                self._valid = load_on_device(
                    data.valid, data.vocabulary, device=self.device, question_at=options.question_at
                )
            except Unsupported as reason:
                print_status(f"readers are validated one after the other: {reason}")

    def run(self, plans: Sequence[Sequence[StepPlan]], should_stop: Callable[[], bool]) -> PendingLosses:
        """Launch the steps; stops between two of them if asked to."""
        assert self._data is not None and self._step is not None
        orders = np.stack([[pack_plan(plan, self._batch_size) for plan in step] for step in plans])
        shapes = [self._data.choose_shape(order[:, : self._batch_size]) for order in orders]
        sent = torch.from_numpy(orders)
        if self.device.type == "cuda":
            sent = sent.pin_memory()  # then no copy need be waited for
        taken, losses = 0, torch.zeros(len(plans), len(self._jobs), device=self.device)
        for order, shape in zip(sent, shapes, strict=True):
            losses[taken].copy_(self._step.take(order, shape))
            taken += 1
            if should_stop():
                break
        return self._bring_to_host(losses[:taken])

    def _bring_to_host(self, losses: Float[Tensor, "steps N"]) -> PendingLosses:
        if self.device.type != "cuda":
            return PendingLosses(losses)
        on_host = torch.empty(losses.shape, pin_memory=True).copy_(losses, non_blocking=True)
        ready = torch.cuda.Event()
        ready.record()
        return PendingLosses(on_host, ready)

    def evaluate(self, jobs: Sequence[Job], *, averaged: bool) -> list[Evaluation]:
        """All readers read the validation data together; one by one if the device cannot hold it."""
        data = jobs[0].data
        assert data.valid is not None and data.templates is not None
        if self._valid is None:
            return [self._evaluate_alone(job, averaged=averaged) for job in jobs]
        chosen = [self._jobs.index(job) for job in jobs]
        weights = self._stack.weights(averaged=averaged)
        if len(chosen) < len(self._jobs):
            weights = {name: tensor[chosen] for name, tensor in weights.items()}
        evaluator = StackedEvaluator(self._valid, data.templates, self._computation.read_batch)
        return evaluator.evaluate(weights, len(chosen))

    def _evaluate_alone(self, job: Job, *, averaged: bool) -> Evaluation:
        reader = Reader(
            job.network,
            job.data.vocabulary,
            question_at=job.settings.data.question_at,
            device=self.device,
            precision=self._precision,
        )
        assert job.data.valid is not None
        if not averaged:
            return reader.evaluate(job.data.valid)
        with job.averaged():
            return reader.evaluate(job.data.valid)

    def synchronize(self) -> None:
        """Apply all deferred updates, so that the jobs' weights and moments are complete."""
        self._computation.synchronize()

    def release(self) -> None:
        """Free the CUDA graphs and their memory, before others are captured."""
        self._step = None
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
            torch.cuda.empty_cache()

    def any(self, flag: bool) -> bool:
        """There is one process."""
        return flag

    def broadcast(self, values: Sequence[float]) -> list[float]:
        """There is one process."""
        return list(values)


def _rate_factors(job: Job) -> list[float]:
    """What the learning rates are multiplied with, step by step."""
    options = job.settings.train
    rates = (schedule.compute_learning_rate(options, step, job.total_steps) for step in range(job.total_steps))
    return [rate / options.learning_rate for rate in rates]


def pack_plan(plan: StepPlan, size: int) -> NDArray[np.int32]:
    """What `StepOrders.unpack` takes apart; the rest of a short batch repeats its first example."""
    examples = np.full(size, plan.examples[0], np.int32)
    examples[: len(plan.examples)] = plan.examples
    head = np.array([len(plan.examples), plan.key], np.int32)
    return np.concatenate([examples, head, plan.shuffled_rows])
