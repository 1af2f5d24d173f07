"""(Examples, settings of N readers) -> N runs: readers of equal shape trained side by side in the same launches.

Each is trained exactly as `loop` trains it alone: the same batches, redrawn rows, initial weights, clipping, Adam,
validations and early stopping, and its run folder looks the same, so that it may be continued alone or in company. To
keep that so, every reader is a `loop.Training` whose weights and moments are views of the stack. Readers that have
finished make room; the others go on unchanged.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from asreader import readers
from asreader.batches.device import Resident, Unfit, resident
from asreader.data.store import Store
from asreader.data.vocabulary import Vocabulary
from asreader.errors import InputError
from asreader.inference.reader import Evaluation, pick_device
from asreader.runs.folder import Run
from asreader.settings import Config
from asreader.system import atomic_files
from asreader.system.progress import bar, say
from asreader.system.signals import politely
from asreader.training import loop, schedule
from asreader.training.distillation import Teacher
from asreader.training.journal import Journal
from asreader.training.loop import Training
from asreader.training.member import Member, SeatedReader
from asreader.training.stacked import Stack
from asreader.training.stacked_adam import Moments, Recipe
from asreader.training.stacked_evaluation import Examiner
from asreader.training.stacked_step import Step

STRETCH = 100
"""Steps prepared at a time, at the most: while the device takes them, the host prepares the next ones."""


MOST_TAUGHT = 64
"""Candidates of a question that a teacher may speak of: a sum over the document is taken for each of them."""


def train(settings: Config, folder: Path, *, count: int = 1, resume: bool = False) -> list[Run]:
    """One reader in `folder`, or `count` of them, their seeds in a row, in folders of it named by the seed.

    On a GPU they are trained side by side, on a CPU, which is busy with one, one after the other.
    """
    if settings.train.backend == "ddp" and count == 1:
        return [loop.train(settings, folder, resume=resume)]  # each process has a device of its own
    first = settings.train.seed
    each = [replace(settings, train=replace(settings.train, seed=seed)) for seed in range(first, first + count)]
    folders = [folder] if count == 1 else [folder / f"seed-{own.train.seed}" for own in each]
    if pick_device(settings.train.device).type == "cuda":
        return train_together(each, folders, resume=resume)
    runs = []
    for own, place in zip(each, folders, strict=True):
        if count > 1:
            say(f"{place}:")
        runs.append(loop.train(own, place, resume=resume))
    return runs


def train_together(
    settings: Sequence[Config], folders: Sequence[Path], *, resume: bool = False, graphs: bool = True
) -> list[Run]:
    """Train one run in each folder; settings may differ in train.seed and train.learning_rate only.

    With `resume` every run goes on where it stopped. What cannot be trained side by side is trained one by one.
    """
    _refuse_unequal(settings, folders)
    runs = [Run(folder) for folder in folders]
    try:
        _refuse_unstackable(settings[0])
        material = _material(settings, runs, resume=resume)
    except Unfit as reason:
        say(f"readers are trained one after the other: {reason}")
        return [loop.train(own, folder, resume=resume) for own, folder in zip(settings, folders, strict=True)]
    trainings = [_training(own, run, material) for own, run in zip(settings, runs, strict=True)]
    Group(trainings, material, graphs=graphs).fit()
    return runs


def _refuse_unequal(settings: Sequence[Config], folders: Sequence[Path]) -> None:
    if len(settings) != len(folders) or not settings:
        raise InputError(f"{len(settings)} readers and {len(folders)} folders: each reader needs one of its own")
    if len({folder.resolve() for folder in folders}) < len(folders):
        raise InputError("two readers cannot share a folder")
    first = settings[0]
    for other in settings[1:]:
        own = replace(other.train, seed=first.train.seed, learning_rate=first.train.learning_rate)
        if replace(other, train=own) != first:
            raise InputError(
                "readers trained together differ in train.seed and train.learning_rate only; train others on their own"
            )


def _refuse_unstackable(settings: Config) -> None:
    """Raise Unfit for a network that is not the one of `stacked`."""
    if settings.reader_name != "attention_sum":
        raise Unfit(f"the reader is {settings.reader_name}, not attention_sum")
    defaults = {name: setting.default for name, setting in readers.settings("attention_sum").items()}
    options = defaults | settings.reader_options
    if options["layers"] != 1 or options["normalise"] != "document":
        raise Unfit("the reader has more than one layer or is normalised over candidates")
    if settings.train.backend == "ddp":
        raise Unfit("train.backend is ddp")
    if (device := pick_device(settings.train.device)).type not in ("cpu", "cuda"):
        raise Unfit(f"not made for {device.type}")


@dataclass(frozen=True)
class Material:
    """What all readers of a group learn from."""

    words: Vocabulary
    store: Store
    valid: Store | None
    train_data: Resident
    valid_data: Resident | None  # None: not to be had, or one candidate for each position is not enough
    teacher: Teacher | None = None


def _material(settings: Sequence[Config], runs: Sequence[Run], *, resume: bool) -> Material:
    """Read the data once for all; nothing is written before it is known to fit."""
    for own, run in zip(settings, runs, strict=True):
        if run.exists() and not resume:
            raise InputError(
                f"{run.folder}: holds a run already; add --resume to go on with it, or choose another --out"
            )
        if run.exists():
            loop.refuse_other_data(run.load_config(), own, run.folder)
    data, device = settings[0].data, pick_device(settings[0].train.device)
    if not data.train:
        raise InputError("data.train is not set: name the training data in [data] or with --set data.train=PATH")
    store = loop.load(data.train, "train", settings[0])
    valid = loop.load(data.valid, "valid", settings[0]) if data.valid else None
    begun = [run.load_vocabulary() for run in runs if run.exists()]
    words = begun[0] if begun else loop.vocabulary(settings[0], store, valid)
    if any(other != words for other in begun):
        raise InputError("the runs have different vocabularies; go on with each alone")
    held = resident(store, words, device=device, question_at=data.question_at, anonymise=data.anonymise)
    try:
        valid_held = resident(valid, words, device=device, question_at=data.question_at) if valid is not None else None
    except Unfit as reason:
        say(f"readers are validated one after the other: {reason}")
        valid_held = None
    return Material(words, store, valid, held, valid_held, _teacher(settings[0], store, held))


def _teacher(settings: Config, store: Store, data: Resident) -> Teacher | None:
    if settings.train.teacher and data.choices > MOST_TAUGHT:
        raise Unfit(f"a teacher has something to say of {data.choices} candidates of one question")
    return loop.teacher(settings, store)


def _training(settings: Config, run: Run, material: Material) -> Training:
    training = Training(run, settings, material.words, material.store, material.valid, teacher=material.teacher)
    if run.exists():
        atomic_files.remove_leftovers(run.folder)
        run.save_config(settings)  # [train] may have changed
        training.restore()
    else:
        run.create(settings, material.words)
    return training


@dataclass(frozen=True)
class Taken:
    """Steps whose losses the journals have not noted yet: the device may still be at them."""

    losses: Float[Tensor, "steps N"]  # on the host
    copied: torch.cuda.Event | None
    members: list[Member]
    before: list[loop.Position]
    sizes: NDArray[np.int32]  # of the batches: steps by members


class Group:
    """Readers in training together, from the present position of each to its end."""

    def __init__(self, trainings: Sequence[Training], material: Material, *, graphs: bool = True) -> None:
        self.trainings, self.data = list(trainings), material.train_data
        self.options, self.device = trainings[0].settings.train, trainings[0].reader.device
        self.members: list[Member] = []
        self._graphs, self._stopping = graphs, False
        self._pending: list[Taken] = []
        self._failures: list[str] = []
        self._asking: list[Member] = []
        self._examiner: Examiner | None = None
        self._step: Step | None = None
        self._taught: Tensor | None = None
        if material.teacher is not None:
            every = np.arange(len(material.store))
            self._taught = material.teacher.said(every, self.data.choices).to(self.device)
        if material.valid is not None and material.valid_data is not None:
            reader = trainings[0].reader
            unknown = reader.unknown_words(material.valid)
            self._examiner = Examiner(material.valid, material.valid_data, unknown, reader.precision)

    def fit(self) -> None:
        """Train every reader to its end, or until stopped; each that has ended predicts with its best weights."""
        self.trainings[0].introduce()
        say(f"readers trained side by side: {len(self.trainings)}")
        with politely(self._stop), ExitStack() as journals, bar() as progress:
            for training in self.trainings:
                if training.finished:
                    training.conclude()
                else:
                    journal = Journal(training.run, training.settings, training.position.step)
                    self.members.append(Member(training, journals.enter_context(journal)))
            try:
                self._seat()
                task = progress.add_task("together", total=None, note="")
                saved = time.monotonic()
                while self.members:
                    taken = self._take()
                    saved = self._settle(taken, saved)
                    progress.update(task, advance=taken, note=self._note_for_bar())
            finally:  # evaluators hold the group, and it them: without this its graphs would outlive it
                self._step = None
        if self._failures:
            raise InputError("; ".join(self._failures))

    def _note_for_bar(self) -> str:
        losses = [m.journal.recent_loss for m in self.members if m.journal.recent_loss is not None]
        return f"{len(self.members)} readers" + (f", loss {sum(losses) / len(losses):.3f}" if losses else "")

    def _stop(self) -> None:
        self._stopping = True

    def _seat(self) -> None:
        """Stack the members' weights and moments; whoever left before takes his room with him."""
        self._rise()
        if not self.members:
            return
        network = self.members[0].training.reader.network
        count, parameters = len(self.members), sum(1 for _ in network.parameters())
        self.weights, first, second = (Stack.zeros(count, network, self.device) for _ in range(3))
        moments = Moments(first, second, torch.zeros(count, parameters, device=self.device))
        self.averages = Stack.zeros(count, network, self.device) if self.options.average else None
        for place, member in enumerate(self.members):
            member.sit(place, self.weights, moments, self.averages)
            if self._examiner is not None:
                member.training.reader = SeatedReader(member.training.reader, self._evaluator(member))  # type: ignore[assignment]
        self._step = Step(
            self.weights,
            moments,
            self.data,
            batch=self.options.batch,
            recipe=self._recipe(),
            average=self.averages,
            graphs=self._graphs,
        )

    def _recipe(self) -> Recipe:
        options, first = self.options, self.trainings[0]
        rates = [member.training.settings.train.learning_rate for member in self.members]
        plan = [schedule.learning_rate(options, step, first.steps) for step in range(first.steps)]
        return Recipe(
            rates=rates,
            clip=options.clip,
            precision=first.reader.precision,
            factors=[rate / options.learning_rate for rate in plan],
            average=options.average,
            dropout=float(first.settings.reader_options.get("dropout", 0.0)),
            taught=self._taught,
            teacher_weight=options.teacher_weight,
        )

    def _rise(self) -> None:
        """Give back what the last seating held: its graphs must be gone, and their memory free, before others come."""
        self._step = None
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
            torch.cuda.empty_cache()

    @property
    def _seated(self) -> Step:
        assert self._step is not None
        return self._step

    def _take(self) -> int:
        """Take as many steps as are ahead of every reader; returns how many were taken before a wish to stop."""
        # A journal's row is due every `log_every` steps; told in that rhythm it measures the speed rightly.
        steps = min(STRETCH, self.options.log_every, *(member.steps_ahead for member in self.members))
        if not steps:
            return 0
        orders = np.stack([member.orders(steps, self.data.anonymous) for member in self.members], axis=1)
        widths = [self.data.widths(order[:, : self.options.batch]) for order in orders]
        taken, losses = 0, torch.zeros(steps, len(self.members), device=self.device)
        for order, width in zip(self._sent(orders), widths, strict=True):
            losses[taken].copy_(self._seated.take(order, width))
            taken += 1
            if self._stopping:
                break
        self._remember(losses[:taken], orders[:taken, :, self.options.batch])
        return taken

    def _sent(self, orders: NDArray[np.int32]) -> Tensor:
        sent = torch.from_numpy(orders)
        return sent.pin_memory() if self.device.type == "cuda" else sent  # then no copy need be waited for

    def _remember(self, losses: Float[Tensor, "steps N"], sizes: NDArray[np.int32]) -> None:
        """Start bringing losses to the host; journals note them a stretch later, when they have long arrived."""
        copied = None
        if self.device.type == "cuda":
            losses = torch.empty(losses.shape, pin_memory=True).copy_(losses, non_blocking=True)
            copied = torch.cuda.Event()
            copied.record()
        members, before = list(self.members), [member.training.position for member in self.members]
        for member in members:
            member.advance(len(losses))
        self._note()
        self._pending.append(Taken(losses, copied, members, before, sizes))

    def _note(self) -> None:
        """Tell the journals all that waits; a reader whose loss is no number any more is given up."""
        for taken in self._pending:
            if taken.copied is not None:
                taken.copied.synchronize()
            for place, member in enumerate(taken.members):
                before, losses, sizes = taken.before[place], taken.losses[:, place], taken.sizes[:, place].tolist()
                if member in self.members:
                    try:
                        for number, (loss, size) in enumerate(zip(losses, sizes, strict=True), 1):
                            member.journal.loss(before.step + number, before.epoch, loss, size)
                    except InputError as error:
                        self._failures.append(f"{member.training.run.folder}: {error}")
                        self._leave([member])
        self._pending.clear()

    def _settle(self, taken: int, saved: float) -> float:
        """Validate, save, stop, end epochs and let finished readers go, in the order in which `loop` does it."""
        due = [member for member in self.members if taken and member.at_validation]
        ended = [member for member in self.members if member.at_end_of_epoch]
        late = time.monotonic() - saved > self.options.checkpoint_seconds
        if not (due or ended or late or self._stopping):
            return saved
        self._seated.settle()
        self._note()
        self._together(due, lambda member: member.training.validate(member.journal))
        for member in self.members:
            # Who ends an epoch is saved there.
            if self._stopping or ((late or member in due) and member not in ended):
                member.training.save()
        if self._stopping:
            raise KeyboardInterrupt
        self._together(ended, lambda member: member.training.end_epoch(member.journal))
        finished = [member for member in self.members if member.training.finished]
        for member in finished:
            self._together([member], lambda member: member.training.conclude())
        if finished:
            self._leave(finished)
        return time.monotonic()

    def _together(self, members: list[Member], act: Callable[[Member], None]) -> None:
        """Do what may validate, for members that are all ready for it: the first who asks has all evaluated."""
        self._asking = [member for member in members if member in self.members]
        for member in self._asking:
            member.evaluation = None
        for member in self._asking:
            act(member)

    def _evaluator(self, member: Member) -> Callable[[Store], Evaluation]:
        return lambda _: self._evaluation(member)

    def _evaluation(self, member: Member) -> Evaluation:
        """The evaluation of one reader, computed with those of all who are about to ask."""
        if member.evaluation is None:
            assert self._examiner is not None
            places = [self.members.index(other) for other in self._asking]
            average = member.training.average
            stack = self.averages if average is not None and average.used else self.weights
            assert stack is not None
            weights = stack if len(places) == len(self.members) else stack.chosen(places)
            for other, evaluation in zip(self._asking, self._examiner.evaluations(weights), strict=True):
                other.evaluation = evaluation
        assert member.evaluation is not None
        return member.evaluation

    def _leave(self, gone: list[Member]) -> None:
        self._seated.settle()
        self.members = [member for member in self.members if member not in gone]
        self._seat()
