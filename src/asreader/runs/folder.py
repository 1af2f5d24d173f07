"""a run: the folder that training writes and everything else reads; the only code that knows its file names."""

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
from asreader.data import vocabulary
from asreader.data.vocabulary import Vocabulary
from asreader.errors import InputError
from asreader.runs.discovery import locate_predictions
from asreader.settings import Config, load_settings
from asreader.system import atomic_files


@dataclass(frozen=True)
class Calibration:
    """Probabilities are raised to 1 / temperature and shared out anew; below the threshold an answer is not sure."""

    temperature: float = 1.0
    threshold: float = 0.0


@dataclass(frozen=True)
class Run:
    """config.toml vocabulary.txt weights.safetensors state.safetensors metrics.jsonl predictions/ card.md and more."""

    folder: Path

    def exists(self) -> bool:
        """Whether a run was begun here."""
        return (self.folder / "config.toml").is_file()

    def begin(self, settings: Config, words: Vocabulary) -> None:
        """Write what is fixed for the run; config.toml comes last and makes it one."""
        words.save(self.folder / "vocabulary.txt")
        atomic_files.write_text(self.environment, json.dumps(environment(), indent=1) + "\n")
        self.save_config(settings)

    def save_config(self, settings: Config) -> None:
        """Write config.toml."""
        atomic_files.write_text(self.folder / "config.toml", settings.toml())

    def config(self) -> Config:
        """The settings of the run."""
        if not self.exists():
            raise InputError(f"{self.folder}: not a run (no config.toml); `asreader train` makes one")
        return load_settings(self.folder / "config.toml")

    def vocabulary(self) -> Vocabulary:
        """The words of the run."""
        return vocabulary.load_vocabulary(self.folder / "vocabulary.txt")

    def save_weights(self, weights: Mapping[str, Tensor], about: Mapping[str, object]) -> None:
        """Keep the best weights so far."""
        _save(self.folder / "weights.safetensors", weights, about)

    def weights(self) -> dict[str, Tensor]:
        """The best weights."""
        return _load(self.folder / "weights.safetensors")[0]

    def save_state(self, tensors: Mapping[str, Tensor], about: Mapping[str, object]) -> None:
        """Keep all that training needs to go on from here."""
        _save(self.folder / "state.safetensors", tensors, about)

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        """What `save_state` kept, or None before the first time."""
        path = self.folder / "state.safetensors"
        return _load(path) if path.is_file() else None

    @property
    def metrics(self) -> Path:
        """One JSON object a line: losses while training, scores of validations."""
        return self.folder / "metrics.jsonl"

    @property
    def environment(self) -> Path:
        """What it was made with, as one JSON object."""
        return self.folder / "environment.json"

    @property
    def tensorboard(self) -> Path:
        """The same for TensorBoard."""
        return self.folder / "tensorboard"

    def predictions(self, name: str) -> Path:
        """A prediction file of the run."""
        return locate_predictions(self.folder, name)

    def save_calibration(self, found: Calibration) -> None:
        """Write calibration.json."""
        atomic_files.write_text(self.folder / "calibration.json", json.dumps(asdict(found), indent=1) + "\n")

    def calibration(self) -> Calibration:
        """What `asreader calibrate` found; without it a run speaks as it was trained."""
        path = self.folder / "calibration.json"
        if not path.is_file():
            return Calibration()
        try:
            found = Calibration(**json.loads(path.read_text(encoding="utf-8")))
            if found.temperature > 0 and 0 <= found.threshold <= 1:
                return found
        except (ValueError, TypeError, OSError):
            pass
        raise InputError(f"{path}: damaged; `asreader calibrate` writes it anew, without it the run is not calibrated")

    def save_card(self, text: str) -> None:
        """Write card.md."""
        atomic_files.write_text(self.folder / "card.md", text)


def environment() -> dict[str, str]:
    """What the run was made with."""
    return {
        "asreader": asreader.__version__,
        "commit": commit(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "machine": f"{platform.system()} {platform.machine()}",
        "accelerator": torch.cuda.get_device_name() if torch.cuda.is_available() else "none",
    }


def commit() -> str:
    """The commit of the checkout this runs from, marked if it was changed since; without one, the version."""
    package = Path(asreader.__file__).parent
    command = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    tracked = ["git", "ls-files", "--error-unmatch", "__init__.py"]
    try:
        subprocess.run(tracked, cwd=package, capture_output=True, check=True)
        return subprocess.run(command, cwd=package, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return asreader.__version__


def _save(path: Path, tensors: Mapping[str, Tensor], about: Mapping[str, object]) -> None:
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    with atomic_files.atomic_write(path) as scratch:
        try:
            safetensors.torch.save_file(plain, scratch, metadata={"about": json.dumps(about)})
        except safetensors.SafetensorError as error:  # how this library reports a full disk
            raise InputError(f"{path}: cannot be written: {error}") from None


def _load(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            about = json.loads((file.metadata() or {}).get("about", "{}"))
            return {name: file.get_tensor(name) for name in file.keys()}, about  # noqa: SIM118 - not a dict
    except FileNotFoundError:
        raise InputError(f"{path}: missing; was the run trained? `asreader train ... --resume` goes on") from None
    except (safetensors.SafetensorError, OSError, ValueError) as error:
        raise InputError(f"{path}: damaged ({error}); train the run again or take it from a copy") from None
