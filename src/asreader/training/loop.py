"""(Examples, settings) -> run: the paper's training, stoppable at any moment and resumable exactly.

What happens at a step is a pure function of the settings, the step and the weights: batches, redrawn rows and dropout
come from generators seeded by (seed, epoch, batch), so a resumed run needs no generator's state to equal an
uninterrupted one. With `train.backend=ddp` several processes take every step together and one of them does the rest.
"""

from __future__ import annotations

import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import torch
from rich.progress import Progress, TaskID
from torch import Tensor

from asreader import readers
from asreader.batches.host import Batcher, plan
from asreader.data import vocabulary as vocabularies
from asreader.data.loading import load_store
from asreader.data.store import Store
from asreader.data.vocabulary import UNKNOWN, Vocabulary
from asreader.errors import InputError
from asreader.evaluation import predictions
from asreader.inference.reader import Reader
from asreader.kernels.gru import unserved
from asreader.runs.card import format_card
from asreader.runs.folder import Run
from asreader.settings import Config
from asreader.system import atomic_files
from asreader.system.progress import bar, say
from asreader.system.signals import politely
from asreader.training import distillation, distributed, schedule
from asreader.training.averaging import Average
from asreader.training.distillation import Teacher
from asreader.training.distributed import Processes
from asreader.training.journal import Journal


@dataclass(frozen=True)
class Position:
    """Where training stands. The next batch is number `batch` of epoch `epoch`."""

    epoch: int = 0
    batch: int = 0
    step: int = 0
    best: float | None = None
    best_step: int = 0
    validations_without_best: int = 0


def train(settings: Config, folder: Path, *, resume: bool = False) -> Run:
    """Train a run in `folder`; with `resume` go on where it stopped, however it stopped."""
    run = Run(folder)
    begun = run.exists()
    if begun and not resume:
        raise InputError(f"{folder}: holds a run already; add --resume to go on with it, or choose another --out")
    if begun:
        refuse_other_data(run.load_config(), settings, folder)
    if not settings.data.train:
        raise InputError("data.train is not set: name the training data in [data] or with --set data.train=PATH")
    with distributed.joined(settings.train) as processes:
        processes.wait()  # all have looked whether there is a run before one of them begins it
        training = _training(run, settings, processes, begun=begun)
        training.fit()
    return run


def _training(run: Run, settings: Config, processes: Processes, *, begun: bool) -> Training:
    """A reader to be trained, as it was left or at its beginning."""
    store = load(settings.data.train, "train", settings)
    valid = load(settings.data.valid, "valid", settings) if settings.data.valid else None
    words = run.load_vocabulary() if begun else vocabulary(settings, store, valid)
    training = Training(run, settings, words, store, valid, teacher=teacher(settings, store), processes=processes)
    if processes.leads and begun:
        atomic_files.remove_leftovers(run.folder)
        run.save_config(settings)  # [train] may have changed
    elif processes.leads:
        run.create(settings, words)
    if begun:
        training.restore()
    return training


def load(path: str, split: str, settings: Config) -> Store:
    """Data as the settings want it read."""
    return load_store(Path(path), split=split, format=settings.data.format or None, skip_bad=settings.data.skip_bad)


def refuse_other_data(old: Config, new: Config, folder: Path) -> None:
    """A run goes on with the data and the network it began with."""
    if old.data != replace(new.data, train=old.data.train, valid=old.data.valid) or old.reader_name != new.reader_name:
        raise InputError(f"{folder}: [data] or [reader] differ from the run's config.toml; only [train] may change")
    if {**old.reader_options, **new.reader_options} != old.reader_options:
        raise InputError(f"{folder}: [reader] differs from the run's config.toml; only [train] may change")
    weights = [options.teacher_weight if options.teacher else None for options in (old.train, new.train)]
    if old.train.teacher != new.train.teacher or weights[0] != weights[1]:
        raise InputError(f"{folder}: train.teacher or its weight differ from the run's config.toml; a run keeps both")


def vocabulary(settings: Config, store: Store, valid: Store | None) -> Vocabulary:
    """The words that get vectors of their own."""
    evaluation_too = settings.data.vocabulary == "train+evaluation" and valid is not None
    return vocabularies.build(
        store.counts(),
        min_count=settings.data.min_count,
        unknown=settings.data.unknown,
        extra=valid.counts() if evaluation_too and valid is not None else (),
    )


def unknown_answers(data: Store, words: Vocabulary) -> float:
    """The share of the answers that have no vector of their own; entities never have one and do not count."""
    answers = np.asarray(data.answers)[np.asarray(data.answerable, np.bool_)]
    return float((words.rows(data.lexicon)[answers] == UNKNOWN).mean()) if len(answers) else 0.0


def teacher(settings: Config, store: Store) -> Teacher | None:
    """Whom the reader learns from beside the answers, if the settings name anybody."""
    options = settings.train
    return distillation.teacher(options.teacher, options.teacher_weight, store) if options.teacher else None


class Training:
    """One reader in training: network, optimiser, position."""

    def __init__(
        self,
        run: Run,
        settings: Config,
        words: Vocabulary,
        store: Store,
        valid: Store | None,
        *,
        teacher: Teacher | None = None,
        processes: Processes = Processes(),  # noqa: B008 - frozen
    ) -> None:
        self.run, self.settings, self.store, self.valid = run, settings, store, valid
        self.teacher, self.processes = teacher, processes
        options, device = settings.train, processes.device(settings.train.device)
        torch.manual_seed(options.seed)
        network = readers.build(settings.reader_name, words.size, settings.reader_options).to(device)
        self.reader = Reader(
            network,
            words,
            question_at=settings.data.question_at,
            device=device,
            precision=_precision(options.precision, device),
        )
        fused = device.type in ("cpu", "cuda")
        self.optimizer = torch.optim.Adam(network.parameters(), options.learning_rate, fused=fused)
        data = settings.data
        self.batcher = Batcher(store, words, question_at=data.question_at, anonymise=data.anonymise)
        self.trainable = np.flatnonzero(store.answerable)
        if not len(self.trainable):
            raise InputError(
                f"{settings.data.train}: no question has its answer in the document; nothing to learn from"
            )
        self.average = Average(network, options.average) if options.average else None
        self.position = Position()
        self._stopping = False

    def fit(self) -> None:
        """Train to the end or until stopped; then predict the validation data with the best weights."""
        self.introduce()
        with (
            politely(self._stop),
            Journal(self.run, self.settings, self.position.step, writes=self.processes.leads) as journal,
            bar() as progress,
        ):
            while not self.finished:
                self._epoch(journal, progress)
        self.conclude()

    @property
    def finished(self) -> bool:
        """Not kept but worked out, so that a finished run goes on when `epochs` or `patience` are raised."""
        options, place = self.settings.train, self.position
        perfect = options.metric == "accuracy" and place.best == 1.0
        return perfect or place.epoch >= options.epochs or place.validations_without_best >= options.patience

    def introduce(self) -> None:
        """Say what is about to be trained on what."""
        parameters = sum(parameter.numel() for parameter in self.reader.network.parameters())
        dropped = len(self.store) - len(self.trainable)
        say(
            f"{self.settings.reader_name}: {parameters:,} weights, {self.reader.vocabulary.size:,} rows; "
            f"{len(self.trainable):,} questions"
            + (f" ({dropped:,} without their answer in the document are left out)" if dropped else "")
            + f"; on {self.reader.device}, {str(self.reader.precision).removeprefix('torch.')}"
            + (f", {self.processes.count} processes" if self.processes.count > 1 else "")
        )
        for size in unserved(self.reader.network, self.reader.device, self.reader.precision):
            say(f"no kernel here for {size} hidden units on this GPU: PyTorch's own operations do it, more slowly")
        if self.valid is not None and not self.settings.data.anonymise:
            taught, asked = (unknown_answers(data, self.reader.vocabulary) for data in (self.store, self.valid))
            if asked > 0.05 and taught < asked / 10:
                say(
                    f"{asked:.0%} of the validation answers are words without a vector of their own, but only "
                    f"{taught:.2%} of the training answers: a larger data.min_count lets the reader learn to give such"
                )

    def _epoch(self, journal: Journal, progress: Progress) -> None:
        options, place = self.settings.train, self.position
        batches = plan(
            self.store.lengths,
            self.trainable,
            size=options.batch,
            prefetch=options.prefetch,
            seed=options.seed,
            epoch=place.epoch,
        )
        task = progress.add_task(f"epoch {place.epoch + 1}", total=len(batches), completed=place.batch, note="")
        saved = time.monotonic()
        while self.position.batch < len(batches) and not self.finished:
            number = self.position.batch
            loss = self.step(batches[number], number)
            self.position = replace(self.position, batch=number + 1, step=self.position.step + 1)
            journal.loss(self.position.step, self.position.epoch, loss, len(batches[number]))
            self._show(progress, task, journal)
            due = bool(options.validate_every) and self.position.step % options.validate_every == 0
            if due:
                self.validate(journal)
            stopping = self.processes.agreed(self._stopping)
            if due or stopping or time.monotonic() - saved > options.checkpoint_seconds:
                self.save()
                saved = time.monotonic()
            if stopping:
                raise KeyboardInterrupt
        progress.remove_task(task)
        if self.position.batch >= len(batches):
            self.end_epoch(journal)

    def step(self, numbers: np.ndarray[tuple[int], np.dtype[np.intp]], batch_number: int) -> Tensor:
        """One batch: loss, gradients, clipping, Adam."""
        options, network = self.settings.train, self.reader.network.train()
        loss, mean = self.processes.mean(self._losses(self.processes.share(numbers), batch_number))
        self.optimizer.zero_grad(set_to_none=True)
        if loss.requires_grad:  # a process may have had no question of a short batch
            loss.backward()
        self.processes.add_gradients(network)
        torch.nn.utils.clip_grad_norm_(network.parameters(), options.clip)
        for group in self.optimizer.param_groups:
            group["lr"] = schedule.learning_rate(options, self.position.step, self.steps)
        self.optimizer.step()
        if self.average is not None:
            self.average.add(self.position.step + 1)
        return mean

    def _losses(self, numbers: np.ndarray[tuple[int], np.dtype[np.intp]], batch_number: int) -> Tensor:
        """The loss of each question that counts."""
        if not len(numbers):
            return torch.zeros(0, device=self.reader.device)
        place = [self.settings.train.seed, self.position.epoch, batch_number]
        batch = self.batcher.batch(numbers, np.random.default_rng(place)).to(self.reader.device)
        # What a network draws for itself, as dropout does, comes from torch's own generator, each process apart.
        torch.manual_seed(int(np.random.SeedSequence([*place, self.processes.rank]).generate_state(1, np.uint64)[0]))
        network: readers.ReaderNetwork = self.reader.network  # type: ignore[assignment]
        with self.reader.autocast():
            reading = network.answer(network.read(batch.document), batch)
        if self.teacher is None:
            return reading.losses(batch.answers)
        said = self.teacher.said(numbers, batch.candidates.shape[1]).to(self.reader.device)
        return self.teacher.losses(reading, batch.answers, said)

    @property
    def steps(self) -> int:
        """Steps of all epochs."""
        return self.settings.train.epochs * -(-len(self.trainable) // self.settings.train.batch)

    def _show(self, progress: Progress, task: TaskID, journal: Journal) -> None:
        best = self.position.best
        note = f"loss {journal.recent_loss:.3f}" if journal.recent_loss is not None else ""
        progress.update(task, advance=1, note=note + (f"  best {best:.4f}" if best is not None else ""))

    def end_epoch(self, journal: Journal) -> None:
        """Validate if that is due, and save."""
        options = self.settings.train
        last = self.position.epoch + 1 >= options.epochs
        self.position = replace(self.position, epoch=self.position.epoch + 1, batch=0)
        # The end of training is always validated: with a falling learning rate it is likely to be the best.
        if not options.validate_every or (last and self.position.step % options.validate_every):
            self.validate(journal)
        self.save()

    def validate(self, journal: Journal) -> None:
        """Score, keep the weights if they are the best so far, decide whether to stop."""
        if self.valid is None:
            self.position = replace(self.position, best_step=self.position.step)
            self._keep_weights()
            return
        place, options = self.position, self.settings.train
        accuracy, loss = self.processes.told(self._scores(self.valid) if self.processes.leads else (0.0, 0.0))
        goodness = accuracy if options.metric == "accuracy" else -loss
        better = place.best is None or goodness > place.best
        without = 0 if better else place.validations_without_best + 1
        self.position = replace(
            place,
            best=goodness if better else place.best,
            best_step=place.step if better else place.best_step,
            validations_without_best=without,
        )
        journal.validation(place.step, place.epoch, accuracy=accuracy, loss=loss, best=better)
        say(f"step {place.step:,}: validation accuracy {accuracy:.4f}, loss {loss:.4f}" + (" *" if better else ""))
        if better:
            self._keep_weights()

    def _scores(self, valid: Store) -> tuple[float, float]:
        """Accuracy and loss of the weights that would be kept."""
        with self._averaged():
            evaluation = self.reader.evaluate(valid)
        return evaluation.scores.accuracy, evaluation.loss

    def _keep_weights(self) -> None:
        if self.processes.leads:
            with self._averaged():
                self.run.save_weights(self.reader.network.state_dict(), asdict(self.position))

    def _averaged(self) -> AbstractContextManager[None]:
        return nullcontext() if self.average is None else self.average.in_place()

    def save(self) -> None:
        """Write all that `restore` needs, in one file that is replaced as a whole."""
        if not self.processes.leads:
            return
        tensors = {f"network.{name}": tensor for name, tensor in self.reader.network.state_dict().items()}
        for number, moments in self.optimizer.state_dict()["state"].items():
            tensors |= {f"adam.{number}.{name}": tensor for name, tensor in moments.items()}
        if self.average is not None:
            tensors |= {f"average.{name}": tensor for name, tensor in self.average.weights.items()}
        self.run.save_state(tensors, asdict(self.position))

    def restore(self) -> None:
        """Go back to the last saved position; without one, training begins anew."""
        kept = self.run.load_state()
        if kept is None:
            return
        tensors, about = kept
        self.position = Position(**about)
        self.reader.network.load_state_dict(_under("network.", tensors))
        if self.average is not None:
            self.average.restore(_under("average.", tensors))
        state: dict[int, dict[str, Tensor]] = {}
        for name, tensor in tensors.items():
            if name.startswith("adam."):
                _, number, key = name.split(".")
                state.setdefault(int(number), {})[key] = tensor
        self.optimizer.load_state_dict({**self.optimizer.state_dict(), "state": state})
        say(f"going on at step {self.position.step:,}, epoch {self.position.epoch + 1}")

    def _stop(self) -> None:
        self._stopping = True

    def conclude(self) -> None:
        """Predict the validation data with the best weights and write the card."""
        if not self.processes.leads:
            return
        self.reader.network.load_state_dict(self.run.load_weights())
        scores = None
        if self.valid is not None:
            evaluation = self.reader.evaluate(self.valid)
            predictions.write(self.run.predictions("valid"), evaluation.predictions)
            scores = evaluation.scores
        self.run.save_card(format_card(self.settings, self.reader.vocabulary, len(self.trainable), scores))


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def _precision(name: str, device: torch.device) -> torch.dtype:
    if name == "auto":
        name = "bfloat16" if device.type == "cuda" and torch.cuda.is_bf16_supported() else "float32"
    return torch.bfloat16 if name == "bfloat16" else torch.float32
