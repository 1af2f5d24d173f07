"""Run: reads and writes the files of a run folder."""

from __future__ import annotations

import json
import platform
import subprocess
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.torch
import torch
from torch import Tensor

import asreader
from asreader.data.vocabulary import Vocabulary
from asreader.data.vocabulary import load_vocabulary as load_vocabulary_file
from asreader.errors import InputError
from asreader.runs.file_names import (
    CALIBRATION_FILE,
    CARD_FILE,
    CONFIG_FILE,
    ENVIRONMENT_FILE,
    METRICS_FILE,
    STATE_FILE,
    TENSORBOARD_FOLDER,
    VOCABULARY_FILE,
    WEIGHTS_FILE,
    name_predictions,
)
from asreader.settings import Config, load_settings
from asreader.system import atomic_files


@dataclass(frozen=True)
class ConfidenceCalibration:
    """Probabilities are raised to 1 / temperature and normalized again; an answer below the threshold is unsure."""

    temperature: float = 1.0
    threshold: float = 0.0


@dataclass(frozen=True)
class Run:
    """A run folder, with settings, vocabulary, weights, training state, metrics, predictions and a card."""

    folder: Path

    def exists(self) -> bool:
        """Whether the folder holds a run."""
        return (self.folder / CONFIG_FILE).is_file()

    def create(self, settings: Config, vocabulary: Vocabulary) -> None:
        """Write the files that never change. config.toml comes last: with it the folder is a run."""
        vocabulary.save(self.folder / VOCABULARY_FILE)
        atomic_files.write_text(self.environment, json.dumps(describe_environment(), indent=1) + "\n")
        self.save_config(settings)

    def save_config(self, settings: Config) -> None:
        """Write config.toml."""
        atomic_files.write_text(self.folder / CONFIG_FILE, settings.toml())

    def load_config(self) -> Config:
        """The settings of the run."""
        if not self.exists():
            raise InputError(f"{self.folder}: not a run (no {CONFIG_FILE}); `asreader train` makes one")
        return load_settings(self.folder / CONFIG_FILE)

    def load_vocabulary(self) -> Vocabulary:
        """The vocabulary of the run."""
        return load_vocabulary_file(self.folder / VOCABULARY_FILE)

    def save_weights(self, weights: Mapping[str, Tensor], about: Mapping[str, object]) -> None:
        """Write the best weights so far."""
        _save_tensors(self.folder / WEIGHTS_FILE, weights, about)

    def load_weights(self) -> dict[str, Tensor]:
        """The best weights."""
        return _load_tensors(self.folder / WEIGHTS_FILE)[0]

    def save_state(self, tensors: Mapping[str, Tensor], about: Mapping[str, object]) -> None:
        """Write the training state: everything that is needed to resume."""
        _save_tensors(self.folder / STATE_FILE, tensors, about)

    def load_state(self) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        """The training state, or None before the first checkpoint."""
        path = self.folder / STATE_FILE
        return _load_tensors(path) if path.is_file() else None

    @property
    def metrics(self) -> Path:
        """The metrics log: one JSON object a line, training losses and validation scores."""
        return self.folder / METRICS_FILE

    @property
    def environment(self) -> Path:
        """Versions and machine, as one JSON object."""
        return self.folder / ENVIRONMENT_FILE

    @property
    def tensorboard(self) -> Path:
        """Folder of TensorBoard events."""
        return self.folder / TENSORBOARD_FOLDER

    @property
    def card(self) -> Path:
        """The card, which training writes last."""
        return self.folder / CARD_FILE

    def predictions(self, split: str) -> Path:
        """The prediction file of a split."""
        return self.folder / name_predictions(split)

    def save_calibration(self, calibration: ConfidenceCalibration) -> None:
        """Write calibration.json."""
        atomic_files.write_text(self.folder / CALIBRATION_FILE, json.dumps(asdict(calibration), indent=1) + "\n")

    def load_calibration(self) -> ConfidenceCalibration:
        """The result of `asreader calibrate`; without one, the identity."""
        path = self.folder / CALIBRATION_FILE
        if not path.is_file():
            return ConfidenceCalibration()
        try:
            calibration = ConfidenceCalibration(**json.loads(path.read_text(encoding="utf-8")))
            if calibration.temperature > 0 and 0 <= calibration.threshold <= 1:
                return calibration
        except (ValueError, TypeError, OSError):
            pass
        raise InputError(f"{path}: damaged; run `asreader calibrate` again, or delete the file to use no calibration")

    def save_card(self, text: str) -> None:
        """Write card.md."""
        atomic_files.write_text(self.card, text)


def describe_environment() -> dict[str, str]:
    """Versions of the software, and the machine."""
    return {
        "asreader": asreader.__version__,
        "commit": describe_commit(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "machine": f"{platform.system()} {platform.machine()}",
        "accelerator": torch.cuda.get_device_name() if torch.cuda.is_available() else "none",
    }


def describe_commit() -> str:
    """The commit of this checkout, marked "-dirty" if files were changed; without a checkout, the version."""
    package = Path(asreader.__file__).parent
    command = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    tracked = ["git", "ls-files", "--error-unmatch", "__init__.py"]
    try:
        subprocess.run(tracked, cwd=package, capture_output=True, check=True)
        return subprocess.run(command, cwd=package, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return asreader.__version__


def _save_tensors(path: Path, tensors: Mapping[str, Tensor], about: Mapping[str, object]) -> None:
    on_cpu = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    with atomic_files.atomic_write(path) as scratch:
        try:
            safetensors.torch.save_file(on_cpu, scratch, metadata={"about": json.dumps(about)})
        except safetensors.SafetensorError as error:  # safetensors reports a full disk this way
            raise InputError(f"{path}: cannot be written: {error}") from None


def _load_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            about = json.loads((file.metadata() or {}).get("about", "{}"))
            return {name: file.get_tensor(name) for name in file.keys()}, about  # noqa: SIM118 - not a dict
    except FileNotFoundError:
        raise InputError(f"{path}: missing; was the run trained? `asreader train ... --resume` continues it") from None
    except (safetensors.SafetensorError, OSError, ValueError) as error:
        raise InputError(f"{path}: damaged ({error}); train the run again or restore it from a copy") from None
