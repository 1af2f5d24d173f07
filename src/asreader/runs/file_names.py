"""file names inside a run folder. No other package spells them; this module imports nothing heavy."""

from __future__ import annotations

CONFIG_FILE = "config.toml"
VOCABULARY_FILE = "vocabulary.txt"
WEIGHTS_FILE = "weights.safetensors"
STATE_FILE = "state.safetensors"
METRICS_FILE = "metrics.jsonl"
CARD_FILE = "card.md"
CALIBRATION_FILE = "calibration.json"
ENVIRONMENT_FILE = "environment.json"
TENSORBOARD_FOLDER = "tensorboard"


def name_predictions(split: str) -> str:
    """The prediction file of a split, relative to the run folder."""
    return f"predictions/{split}.jsonl"
