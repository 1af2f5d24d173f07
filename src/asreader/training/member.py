"""a reader's own training -> its place in a group: which steps are next, what each step has to know."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from asreader.batches.device import dealt
from asreader.batches.host import plan
from asreader.data.store import Store
from asreader.inference.reader import Evaluation, Reader
from asreader.training.journal import Journal
from asreader.training.loop import Training
from asreader.training.stacked import Stack
from asreader.training.stacked_adam import Moments


class SeatedReader:
    """What `Training` wants of its Reader, where all readers of the group are evaluated together."""

    def __init__(self, reader: Reader, evaluate: Callable[[Store], Evaluation]) -> None:
        self.network, self.vocabulary = reader.network, reader.vocabulary
        self.device, self.precision = reader.device, reader.precision
        self.evaluate = evaluate


class Member:
    """A reader of the group: its training, its journal, the batches of the epoch it is in."""

    def __init__(self, training: Training, journal: Journal) -> None:
        self.training, self.journal = training, journal
        self.evaluation: Evaluation | None = None  # of its present weights, if there was one
        self._planned: tuple[int, list[NDArray[np.intp]]] | None = None

    def sit(self, place: int, weights: Stack, moments: Moments, averages: Stack | None) -> None:
        """Move weights, moments and average into stacks; network and optimiser look at them there from now on."""
        if averages is not None and (average := self.training.average) is not None:
            for name, view in averages.views(place).items():
                view.copy_(average.weights[name])
                average.weights[name] = view
        parts = (stack.views(place) for stack in (weights, moments.first, moments.second))
        weight, first, second = parts
        state = self.training.optimizer.state
        for number, (name, parameter) in enumerate(self.training.reader.network.named_parameters()):
            weight[name].copy_(parameter.detach())
            parameter.data = weight[name]
            room = {"step": moments.steps[place, number], "exp_avg": first[name], "exp_avg_sq": second[name]}
            for key, held in state.get(parameter, {}).items():
                room[key].copy_(held)
            state[parameter] = room

    @property
    def batches(self) -> list[NDArray[np.intp]]:
        """The plan of the present epoch."""
        options, epoch = self.training.settings.train, self.training.position.epoch
        if self._planned is None or self._planned[0] != epoch:
            batches = plan(
                self.training.store.lengths,
                self.training.trainable,
                size=options.batch,
                prefetch=options.prefetch,
                seed=options.seed,
                epoch=epoch,
            )
            self._planned = epoch, batches
        return self._planned[1]

    @property
    def steps_ahead(self) -> int:
        """Steps until something else than a step is due."""
        place, every = self.training.position, self.training.settings.train.validate_every
        ahead = len(self.batches) - place.batch
        return min(ahead, every - place.step % every) if every else ahead

    @property
    def at_validation(self) -> bool:
        """Whether, after a step, a validation is due that does not wait for the epoch's end."""
        every = self.training.settings.train.validate_every
        return bool(every) and self.training.position.step % every == 0

    @property
    def at_end_of_epoch(self) -> bool:
        """Whether every batch was taken."""
        return self.training.position.batch >= len(self.batches)

    def orders(self, steps: int, anonymous: int) -> NDArray[np.int32]:
        """What `Step` has to know for the next steps: examples, how many of them count, a key, dealt rows."""
        options, place, words = self.training.settings.train, self.training.position, self.training.reader.vocabulary
        orders = np.empty((steps, options.batch + 2 + anonymous), np.int32)
        for order, number in zip(orders, range(place.batch, place.batch + steps), strict=True):
            batch = self.batches[number]
            order[: options.batch] = batch[0]  # fills the places that a short batch leaves empty
            order[: len(batch)] = batch
            order[options.batch] = len(batch)
            generator = np.random.default_rng([options.seed, place.epoch, number])
            order[options.batch + 2 :] = dealt(words, generator)
            order[options.batch + 1] = generator.integers(1 << 31)
        return orders

    def advance(self, steps: int) -> None:
        """Move the position on by steps that were taken."""
        place = self.training.position
        self.training.position = replace(place, batch=place.batch + steps, step=place.step + steps)
