"""losses and scores -> metrics.jsonl and TensorBoard."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from torch import Tensor

from asreader.errors import InputError
from asreader.runs.folder import Run
from asreader.settings import Config
from asreader.system import atomic_files

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter


class Journal:
    """Appends to a run's records; what an earlier attempt wrote after `step` is dropped first.

    Without `writes` it only keeps count: another process writes the same.
    """

    def __init__(self, run: Run, settings: Config, step: int, *, writes: bool = True) -> None:
        self._path = run.metrics if writes else Path(os.devnull)
        self._every = settings.train.log_every
        self._drop_after(step)
        self._file = self._path.open("a", encoding="utf-8")
        self._board = _board(run, step) if writes and settings.train.tensorboard else None
        self._losses: list[Tensor] = []
        self._questions, self._since = 0, time.monotonic()
        self.recent_loss: float | None = None

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
        if self._board:
            self._board.close()

    def loss(self, step: int, epoch: int, loss: Tensor, questions: int) -> None:
        """Note a batch's loss. Losses stay on the device until a row is due: no waiting for a GPU at every batch."""
        self._losses.append(loss)
        self._questions += questions
        if len(self._losses) < self._every:
            return
        self.recent_loss = sum(map(float, self._losses)) / len(self._losses)
        if self.recent_loss != self.recent_loss:
            raise InputError(f"the loss is not a number at step {step}; try a smaller train.learning_rate")
        speed = self._questions / (time.monotonic() - self._since)
        self._write(step, epoch, "train", loss=self.recent_loss, questions_per_second=round(speed, 1))
        self._losses, self._questions, self._since = [], 0, time.monotonic()

    def validation(self, step: int, epoch: int, *, accuracy: float, loss: float, best: bool) -> None:
        """Note the scores of a validation."""
        self._write(step, epoch, "valid", accuracy=accuracy, loss=loss, best=float(best))
        self._losses, self._questions, self._since = [], 0, time.monotonic()

    def _write(self, step: int, epoch: int, kind: str, **values: float) -> None:
        self._file.write(json.dumps({"step": step, "epoch": epoch, "kind": kind, **values}) + "\n")
        self._file.flush()
        if self._board:
            for name, value in values.items():
                self._board.add_scalar(f"{kind}/{name}", value, step)

    def _drop_after(self, step: int) -> None:
        if self._path.is_file():
            lines = self._path.read_text(encoding="utf-8").splitlines(keepends=True)
            atomic_files.write_text(self._path, "".join(line for line in lines if _step(line) <= step))


def _step(line: str) -> float:
    """The step of a row; a row that a kill cut short belongs to no step that is kept."""
    try:
        return float(json.loads(line)["step"]) if line.endswith("\n") else float("inf")
    except (ValueError, KeyError, TypeError):
        return float("inf")


def _board(run: Run, step: int) -> SummaryWriter:
    from torch.utils.tensorboard import SummaryWriter  # takes a second to import

    return SummaryWriter(str(run.tensorboard), purge_step=step + 1)
