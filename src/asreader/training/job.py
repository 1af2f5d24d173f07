"""one reader in training: its network, Adam's moments, its position, and its run folder.

What happens at a step is a pure function of the settings, the step and the weights: batches, shuffled rows and dropout
come from (seed, epoch, batch), so a resumed run needs no generator's state to equal an uninterrupted one.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from asreader import readers
from asreader.batches.plan import StepPlan, plan_epoch, plan_step
from asreader.data.store import Store
from asreader.data.vocabulary import Vocabulary
from asreader.errors import InputError
from asreader.evaluation import predictions
from asreader.inference.store_evaluation import Evaluation, PredictionTemplates
from asreader.runs.card import format_card
from asreader.runs.folder import Run
from asreader.settings import Config
from asreader.training.distillation import Teacher
from asreader.training.ema import ExponentialMovingAverage


@dataclass(frozen=True)
class Position:
    """Where training stands. The next batch is number `batch` of epoch `epoch`."""

    epoch: int = 0
    batch: int = 0
    step: int = 0
    best: float | None = None
    best_step: int = 0
    validations_without_best: int = 0


@dataclass
class AdamMoments:
    """What Adam remembers of one parameter."""

    step: Tensor
    exp_avg: Tensor
    exp_avg_sq: Tensor


@dataclass(frozen=True)
class TrainingData:
    """What all readers of a training learn from and are validated on."""

    vocabulary: Vocabulary
    train: Store
    valid: Store | None
    teacher: Teacher | None
    templates: PredictionTemplates | None  # of the validation data


class Job:
    """One reader in training. Engines may move its tensors; they are complete after `Engine.synchronize`."""

    def __init__(self, run: Run, settings: Config, data: TrainingData, device: torch.device) -> None:
        self.run, self.settings, self.data = run, settings, data
        torch.manual_seed(settings.train.seed)
        self.network = readers.build(settings.reader_name, data.vocabulary.size, settings.reader_options).to(device)
        self.moments = {
            name: AdamMoments(torch.zeros((), device=device), torch.zeros_like(own), torch.zeros_like(own))
            for name, own in ((name, own.detach()) for name, own in self.network.named_parameters())
        }
        decay = settings.train.average
        self.ema = ExponentialMovingAverage(self.network, decay) if decay else None
        self.position = Position()
        self.trainable = np.flatnonzero(data.train.answerable)
        self._planned: tuple[int, list[NDArray[np.intp]]] | None = None
        if not len(self.trainable):
            raise InputError(f"{settings.data.train}: no question has its answer in the document; nothing to learn")

    @property
    def is_finished(self) -> bool:
        """Not stored but derived, so that a finished run continues when `epochs` or `patience` are raised."""
        options, position = self.settings.train, self.position
        is_perfect = options.metric == "accuracy" and position.best == 1.0
        return is_perfect or position.epoch >= options.epochs or position.validations_without_best >= options.patience

    @property
    def batches(self) -> list[NDArray[np.intp]]:
        """The plan of the present epoch."""
        options, epoch = self.settings.train, self.position.epoch
        if self._planned is None or self._planned[0] != epoch:
            batches = plan_epoch(
                self.data.train.lengths,
                self.trainable,
                size=options.batch,
                prefetch=options.prefetch,
                seed=options.seed,
                epoch=epoch,
            )
            self._planned = epoch, batches
        return self._planned[1]

    @property
    def total_steps(self) -> int:
        """Steps of all epochs."""
        return self.settings.train.epochs * -(-len(self.trainable) // self.settings.train.batch)

    @property
    def steps_until_event(self) -> int:
        """Steps until a validation or the end of the epoch."""
        position, every = self.position, self.settings.train.validate_every
        ahead = len(self.batches) - position.batch
        return min(ahead, every - position.step % every) if every else ahead

    @property
    def is_validation_due(self) -> bool:
        """Whether, after a step, a validation is due that does not wait for the epoch's end."""
        every = self.settings.train.validate_every
        return bool(every) and self.position.step % every == 0

    @property
    def is_epoch_over(self) -> bool:
        """Whether every batch of the epoch was taken."""
        return self.position.batch >= len(self.batches)

    def plan_steps(self, count: int) -> list[StepPlan]:
        """The next steps."""
        seed, position = self.settings.train.seed, self.position
        return [
            plan_step(
                self.batches[position.batch + offset],
                self.data.vocabulary,
                seed=seed,
                epoch=position.epoch,
                batch=position.batch + offset,
                step=position.step + offset,
            )
            for offset in range(count)
        ]

    def advance(self, steps: int) -> None:
        """Move the position on by steps that were taken."""
        position = self.position
        self.position = replace(position, batch=position.batch + steps, step=position.step + steps)

    def start_epoch(self) -> bool:
        """Move to the next epoch; returns whether a validation is due now."""
        options, position = self.settings.train, self.position
        self.position = replace(position, epoch=position.epoch + 1, batch=0)
        is_last = self.position.epoch >= options.epochs
        # The end of training is always validated: with a falling learning rate it is likely to be the best.
        return not options.validate_every or (is_last and bool(position.step % options.validate_every))

    def record_validation(self, accuracy: float, loss: float) -> bool:
        """Note a validation; returns whether it is the best so far."""
        position = self.position
        goodness = accuracy if self.settings.train.metric == "accuracy" else -loss
        is_best = position.best is None or goodness > position.best
        self.position = replace(
            position,
            best=goodness if is_best else position.best,
            best_step=position.step if is_best else position.best_step,
            validations_without_best=0 if is_best else position.validations_without_best + 1,
        )
        return is_best

    def averaged(self) -> AbstractContextManager[None]:
        """Inside, the network has the weights that would be kept."""
        return nullcontext() if self.ema is None else self.ema.applied()

    def keep_weights(self) -> None:
        """Write the present weights as the best."""
        with self.averaged():
            self.run.save_weights(self.network.state_dict(), asdict(self.position))

    def save(self) -> None:
        """Write all that `restore` needs, in one file that is replaced as a whole."""
        tensors = {f"network.{name}": tensor for name, tensor in self.network.state_dict().items()}
        for number, moments in enumerate(self.moments.values()):
            # Engines may count the steps of all parameters in one tensor.
            tensors |= {f"adam.{number}.step": moments.step.clone()}
            tensors |= {f"adam.{number}.exp_avg": moments.exp_avg, f"adam.{number}.exp_avg_sq": moments.exp_avg_sq}
        if self.ema is not None:
            tensors |= {f"average.{name}": tensor for name, tensor in self.ema.weights.items()}
        self.run.save_state(tensors, asdict(self.position))

    def restore(self) -> bool:
        """Return to the last saved position; returns whether there was one."""
        kept = self.run.load_state()
        if kept is None:
            return False
        tensors, about = kept
        self.position = Position(**about)
        self.network.load_state_dict(_select_prefix("network.", tensors))
        if self.ema is not None:
            self.ema.restore(_select_prefix("average.", tensors))
        for number, moments in enumerate(self.moments.values()):
            for name in ("step", "exp_avg", "exp_avg_sq"):
                if (saved := tensors.get(f"adam.{number}.{name}")) is not None:
                    getattr(moments, name).copy_(saved)
        return True

    def conclude(self, evaluation: Evaluation | None) -> None:
        """Write the predictions of the validation data and the card."""
        scores = None
        if evaluation is not None:
            predictions.write_predictions(self.run.predictions("valid"), evaluation.predictions)
            scores = evaluation.scores
        self.run.save_card(format_card(self.settings, self.data.vocabulary, len(self.trainable), scores))


def _select_prefix(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
