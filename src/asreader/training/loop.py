"""(data, settings) -> runs: the one training loop. It drives engines, validates, saves and stops.

Readers of equal shape are trained together where the engine can, each exactly as it would be alone: its run folder
looks the same and may be continued alone, with others, or with another engine. A reader that has finished leaves the
others.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from asreader.batches.device import Unsupported
from asreader.data import vocabulary as vocabularies
from asreader.data.dataset import load_store
from asreader.data.store import Store
from asreader.data.vocabulary import UNKNOWN, Vocabulary
from asreader.errors import InputError
from asreader.inference.store_evaluation import PredictionTemplates
from asreader.readers.layers import slow_sizes
from asreader.runs.folder import Run
from asreader.settings import Config
from asreader.system import atomic_files
from asreader.system.progress import print_status, progress_bar
from asreader.system.signals import graceful_shutdown
from asreader.training import distillation
from asreader.training.engines import Engine, JobSpec, PendingLosses, choose_engine, open_engine
from asreader.training.job import Job, Position, TrainingData
from asreader.training.journal import Journal


def train(settings: Config, folder: Path, *, count: int = 1, resume: bool = False) -> list[Run]:
    """One reader in `folder`, or `count` of them with consecutive seeds, in folders of it named by the seed."""
    first = settings.train.seed
    each = [replace(settings, train=replace(settings.train, seed=seed)) for seed in range(first, first + count)]
    folders = [folder] if count == 1 else [folder / f"seed-{own.train.seed}" for own in each]
    return train_runs(each, folders, resume=resume)


def train_run(settings: Config, folder: Path, *, resume: bool = False) -> Run:
    """Train one run; with `resume` continue where it stopped, however it stopped."""
    (run,) = train_runs([settings], [folder], resume=resume)
    return run


def train_runs(settings: Sequence[Config], folders: Sequence[Path], *, resume: bool = False) -> list[Run]:
    """Train one run in each folder; settings may differ in train.seed and train.learning_rate only."""
    _refuse_unequal(settings, folders)
    runs = [Run(folder) for folder in folders]
    _refuse_existing(settings, runs, resume=resume)
    spec = JobSpec(settings[0], len(settings))
    name, rejected = choose_engine(spec)
    if spec.settings.train.engine == "auto" and rejected and spec.device.type == "cuda":
        print_status("; ".join(f"engine {other} is not used: {reason}" for other, reason in rejected.items()))
    try:
        _train_with(name, spec, settings, runs)
    except Unsupported as reason:
        print_status(f"engine {name} cannot hold these data: {reason}; engine plain is used")
        _train_with("plain", spec, settings, runs)
    return runs


def _train_with(name: str, spec: JobSpec, settings: Sequence[Config], runs: Sequence[Run]) -> None:
    with open_engine(name, spec) as engine:
        engine.any(False)  # all ranks have looked for runs before the main one starts them
        data = load_data(settings, runs)
        for first in range(0, len(runs), engine.max_jobs):
            some = slice(first, first + engine.max_jobs)
            jobs = [_make_job(own, run, data, engine) for own, run in zip(settings[some], runs[some], strict=True)]
            if len(runs) > engine.max_jobs:
                print_status(f"{', '.join(str(job.run.folder) for job in jobs)}:")
            fit(jobs, engine)


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


def _refuse_existing(settings: Sequence[Config], runs: Sequence[Run], *, resume: bool) -> None:
    for own, run in zip(settings, runs, strict=True):
        if run.exists() and not resume:
            raise InputError(
                f"{run.folder}: holds a run already; add --resume to go on with it, or choose another --out"
            )
        if run.exists():
            refuse_other_data(run.load_config(), own, run.folder)
    if not settings[0].data.train:
        raise InputError("data.train is not set: name the training data in [data] or with --set data.train=PATH")


def refuse_other_data(old: Config, new: Config, folder: Path) -> None:
    """A run continues with the data and the network it started with."""
    if old.data != replace(new.data, train=old.data.train, valid=old.data.valid) or old.reader_name != new.reader_name:
        raise InputError(f"{folder}: [data] or [reader] differ from the run's config.toml; only [train] may change")
    if {**old.reader_options, **new.reader_options} != old.reader_options:
        raise InputError(f"{folder}: [reader] differs from the run's config.toml; only [train] may change")
    weights = [options.teacher_weight if options.teacher else None for options in (old.train, new.train)]
    if old.train.teacher != new.train.teacher or weights[0] != weights[1]:
        raise InputError(f"{folder}: train.teacher or its weight differ from the run's config.toml; a run keeps both")


def load_data(settings: Sequence[Config], runs: Sequence[Run]) -> TrainingData:
    """Read the data once for all; a run that exists already has its vocabulary."""
    first = settings[0]
    train = load_split(first.data.train, "train", first)
    valid = load_split(first.data.valid, "valid", first) if first.data.valid else None
    existing = [run.load_vocabulary() for run in runs if run.exists()]
    vocabulary = existing[0] if existing else build_vocabulary(first, train, valid)
    if any(other != vocabulary for other in existing):
        raise InputError("the runs have different vocabularies; continue each alone")
    options = first.train
    has_teacher = bool(options.teacher)
    teacher = distillation.load_teacher(options.teacher_files, options.teacher_weight, train) if has_teacher else None
    templates = PredictionTemplates(valid, vocabulary) if valid is not None else None
    return TrainingData(vocabulary, train, valid, teacher, templates)


def load_split(path: str, split: str, settings: Config) -> Store:
    """Data as the settings want it read."""
    return load_store(Path(path), split=split, format=settings.data.format or None, skip_bad=settings.data.skip_bad)


def build_vocabulary(settings: Config, train: Store, valid: Store | None) -> Vocabulary:
    """The words that get vectors of their own."""
    uses_valid = settings.data.vocabulary == "train+evaluation" and valid is not None
    return vocabularies.build_vocabulary(
        train.count_words(),
        min_count=settings.data.min_count,
        unknown=settings.data.unknown,
        extra=valid.count_words() if uses_valid and valid is not None else (),
    )


def _make_job(settings: Config, run: Run, data: TrainingData, engine: Engine) -> Job:
    """A reader at its start, or as it was left."""
    job = Job(run, settings, data, engine.device)
    exists = run.exists()
    engine.any(False)
    if engine.is_main and exists:
        atomic_files.remove_scratch_files(run.folder)
        run.save_config(settings)  # [train] may have changed
    elif engine.is_main:
        run.create(settings, data.vocabulary)
    if exists and job.restore():
        print_status(f"going on at step {job.position.step:,}, epoch {job.position.epoch + 1}")
    return job


@dataclass(frozen=True)
class _Stretch:
    """Steps whose losses the journals have not noted yet."""

    losses: PendingLosses
    jobs: list[Job]
    before: list[Position]
    sizes: list[list[int]]  # of the batches: steps by jobs


def fit(jobs: Sequence[Job], engine: Engine) -> None:
    """Train every job to its end, or until stopped; each that has ended predicts with its best weights."""
    _Fit(jobs, engine).run()


class _Fit:
    """One call of `fit`."""

    def __init__(self, jobs: Sequence[Job], engine: Engine) -> None:
        self._jobs, self._engine, self._options = list(jobs), engine, jobs[0].settings.train
        self._active: list[Job] = []
        self._journals: dict[Job, Journal] = {}
        self._pending: list[_Stretch] = []
        self._failures: list[str] = []
        self._is_stopping = False

    def run(self) -> None:
        """Until all jobs have finished."""
        introduce(self._jobs, self._engine)
        with graceful_shutdown(self._stop), ExitStack() as stack, progress_bar() as progress:
            for job in self._jobs:
                journal = Journal(job.run, job.settings, job.position.step, writes=self._engine.is_main)
                self._journals[job] = stack.enter_context(journal)
            self._active = list(self._jobs)
            self._engine.attach(self._active)
            self._conclude_finished()
            task, saved = progress.add_task("training", total=self._steps_of_epoch(), note=""), time.monotonic()
            while self._active:
                taken = self._take_steps()
                first = self._active[0].position if self._active else None
                progress.update(task, completed=first.batch if first else None, note=self._describe())
                saved = self._handle_events(taken, saved)
        if self._failures:
            raise InputError("; ".join(self._failures))

    def _steps_of_epoch(self) -> int | None:
        return len(self._active[0].batches) if self._active else None

    def _describe(self) -> str:
        losses = [self._journals[job].recent_loss for job in self._active]
        known = [loss for loss in losses if loss is not None]
        count = f"{len(self._active)} readers, " if len(self._active) > 1 else ""
        epoch = f"epoch {self._active[0].position.epoch + 1}" if self._active else ""
        best = self._active[0].position.best if len(self._active) == 1 else None
        parts = [f"{count}{epoch}", f"loss {sum(known) / len(known):.3f}" if known else ""]
        return "  ".join(part for part in (*parts, f"best {best:.4f}" if best is not None else "") if part)

    def _stop(self) -> None:
        self._is_stopping = True

    def _take_steps(self) -> int:
        """Take as many steps as are ahead of every job; returns how many were taken before a stop."""
        # A journal's row is due every `log_every` steps; noted in that rhythm it measures the speed right.
        ahead = min(job.steps_until_event for job in self._active)
        count = min(self._engine.max_steps, self._options.log_every, ahead)
        if not count:
            return 0
        plans = list(zip(*(job.plan_steps(count) for job in self._active), strict=True))
        losses = self._engine.run(plans, lambda: self._is_stopping)
        taken = len(losses.values)
        jobs, before = list(self._active), [job.position for job in self._active]
        sizes = [[len(plan.examples) for plan in step] for step in plans[:taken]]
        for job in jobs:
            job.advance(taken)
        self._note_losses()  # of the stretch before, which have long arrived
        self._pending.append(_Stretch(losses, jobs, before, sizes))
        return taken

    def _note_losses(self) -> None:
        """Write all pending losses; a reader whose loss is not a number is given up."""
        pending, self._pending = self._pending, []
        for stretch in pending:
            values = stretch.losses.wait()
            for column, (job, before) in enumerate(zip(stretch.jobs, stretch.before, strict=True)):
                if job not in self._active:
                    continue
                try:
                    for number, sizes in enumerate(stretch.sizes):
                        self._journals[job].loss(
                            before.step + number + 1, before.epoch, values[number, column], sizes[column]
                        )
                except InputError as error:
                    self._failures.append(f"{job.run.folder}: {error}" if len(self._jobs) > 1 else str(error))
                    self._remove([job])

    def _handle_events(self, taken: int, saved: float) -> float:
        """Validate, save, stop, end epochs and remove finished jobs, in the order of a single reader."""
        due = [job for job in self._active if taken and job.is_validation_due]
        ended = [job for job in self._active if job.is_epoch_over]
        is_late = time.monotonic() - saved > self._options.checkpoint_seconds
        is_stopping = self._engine.any(self._is_stopping)
        if not (due or ended or is_late or is_stopping):
            return saved
        self._engine.synchronize()
        self._note_losses()
        self._validate(due)
        for job in self._active:
            if is_stopping or ((is_late or job in due) and job not in ended):  # a job that ends an epoch is saved there
                self._save(job)
        if is_stopping:
            raise KeyboardInterrupt
        ended = [job for job in ended if job in self._active]
        self._validate([job for job in ended if job.start_epoch()])
        for job in ended:
            self._save(job)
        self._conclude_finished()
        return time.monotonic()

    def _validate(self, jobs: list[Job]) -> None:
        """Score, keep the weights that are the best so far."""
        jobs = [job for job in jobs if job in self._active]
        if not jobs:
            return
        if jobs[0].data.valid is None:
            for job in jobs:
                job.position = replace(job.position, best_step=job.position.step)
                self._keep_weights(job)
            return
        evaluations = self._engine.evaluate(jobs, averaged=True) if self._engine.is_main else [None] * len(jobs)
        for job, evaluation in zip(jobs, evaluations, strict=True):
            own = (evaluation.scores.accuracy, evaluation.loss) if evaluation else (0.0, 0.0)
            accuracy, loss = self._engine.broadcast(own)
            position, is_best = job.position, job.record_validation(accuracy, loss)
            self._journals[job].validation(position.step, position.epoch, accuracy=accuracy, loss=loss, best=is_best)
            mark = " *" if is_best else ""
            print_status(f"step {position.step:,}: validation accuracy {accuracy:.4f}, loss {loss:.4f}{mark}")
            if is_best:
                self._keep_weights(job)

    def _keep_weights(self, job: Job) -> None:
        if self._engine.is_main:
            job.keep_weights()

    def _save(self, job: Job) -> None:
        if self._engine.is_main:
            job.save()

    def _conclude_finished(self) -> None:
        finished = [job for job in self._active if job.is_finished]
        if not finished:
            return
        if self._engine.is_main:
            for job in finished:
                job.network.load_state_dict(job.run.load_weights())
            has_valid = finished[0].data.valid is not None
            evaluations = self._engine.evaluate(finished, averaged=False) if has_valid else [None] * len(finished)
            for job, evaluation in zip(finished, evaluations, strict=True):
                job.conclude(evaluation)
        self._remove(finished)

    def _remove(self, gone: list[Job]) -> None:
        self._engine.synchronize()
        self._active = [job for job in self._active if job not in gone]
        if self._active:
            self._engine.attach(self._active)


def introduce(jobs: Sequence[Job], engine: Engine) -> None:
    """Print what is about to be trained on what."""
    job, data = jobs[0], jobs[0].data
    parameters = sum(parameter.numel() for parameter in job.network.parameters())
    dropped = len(data.train) - len(job.trainable)
    precision = JobSpec(job.settings).precision
    print_status(
        f"{job.settings.reader_name}: {parameters:,} weights, {data.vocabulary.size:,} rows; "
        f"{len(job.trainable):,} questions"
        + (f" ({dropped:,} without their answer in the document are left out)" if dropped else "")
        + f"; on {engine.device}, {str(precision).removeprefix('torch.')}, engine {engine.name}"
        + (f", {len(jobs)} readers" if len(jobs) > 1 else "")
    )
    for size in slow_sizes(job.network, engine.device, precision):
        print_status(f"no kernel for {size} hidden units on this GPU: steps are launched one by one, more slowly")
    if data.valid is not None and not job.settings.data.anonymise:
        taught, asked = (unknown_answers(store, data.vocabulary) for store in (data.train, data.valid))
        if asked > 0.05 and taught < asked / 10:
            print_status(
                f"{asked:.0%} of the validation answers are words without a vector of their own, but only "
                f"{taught:.2%} of the training answers: a larger data.min_count lets the reader learn to give such"
            )


def unknown_answers(data: Store, vocabulary: Vocabulary) -> float:
    """Fraction of the answers without a vector of their own; entities never have one and do not count."""
    answers = np.asarray(data.answers)[np.asarray(data.answerable, np.bool_)]
    return float((vocabulary.rows(data.lexicon)[answers] == UNKNOWN).mean()) if len(answers) else 0.0
