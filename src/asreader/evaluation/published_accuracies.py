"""the accuracies of the paper's result tables, as fractions of 1."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PublishedAccuracy:
    """Validation and test accuracy of one system; None if the paper does not report it."""

    valid: float | None = None
    test: float | None = None


ATTENTION_SUM_READER = {
    "cnn": {
        "single": PublishedAccuracy(0.686, 0.695),
        "best": PublishedAccuracy(0.684, 0.699),
        "average": PublishedAccuracy(0.739, 0.754),
        "greedy": PublishedAccuracy(0.745, 0.748),
    },
    "dailymail": {
        "single": PublishedAccuracy(0.750, 0.739),
        "best": PublishedAccuracy(0.745, 0.735),
        "average": PublishedAccuracy(0.781, 0.771),
        "greedy": PublishedAccuracy(0.787, 0.777),
    },
    "cbt-ne": {
        "single": PublishedAccuracy(0.738, 0.686),
        "best": PublishedAccuracy(0.733, 0.684),
        "average": PublishedAccuracy(0.745, 0.706),
        "greedy": PublishedAccuracy(0.762, 0.710),
    },
    "cbt-cn": {
        "single": PublishedAccuracy(0.688, 0.634),
        "best": PublishedAccuracy(0.677, 0.632),
        "average": PublishedAccuracy(0.711, 0.689),
        "greedy": PublishedAccuracy(0.724, 0.675),
    },
}
"""The Attention Sum Reader."""

TOP_K_ACCURACY = {
    "cnn": {1: 0.748, 2: 0.855, 5: 0.948},
    "dailymail": {1: 0.777, 2: 0.876, 5: 0.948},
    "cbt-ne": {1: 0.710, 2: 0.869, 5: 0.968},
    "cbt-cn": {1: 0.675, 2: 0.825, 5: 0.954},
}
"""Top-k accuracy of its greedy ensemble on test data."""

MEMORY_NETWORK = "MemNN, window memory and self-supervision"

OTHER_SYSTEMS = {
    "cnn": {
        "Attentive Reader": PublishedAccuracy(0.616, 0.630),
        "Impatient Reader": PublishedAccuracy(0.618, 0.638),
        f"{MEMORY_NETWORK}, single": PublishedAccuracy(0.634, 0.668),
        f"{MEMORY_NETWORK}, ensemble": PublishedAccuracy(0.662, 0.694),
        "Dynamic Entity Representation, max-pool": PublishedAccuracy(0.712, 0.707),
        "Dynamic Entity Representation, max-pool and byway": PublishedAccuracy(0.708, 0.720),
        "Dynamic Entity Representation, with word2vec": PublishedAccuracy(0.713, 0.729),
        "Chen et al. 2016, single": PublishedAccuracy(0.724, 0.724),
    },
    "dailymail": {
        "Attentive Reader": PublishedAccuracy(0.705, 0.690),
        "Impatient Reader": PublishedAccuracy(0.690, 0.680),
        "Chen et al. 2016, single": PublishedAccuracy(0.769, 0.758),
    },
    "cbt-ne": {
        "humans, question alone (10% of test)": PublishedAccuracy(None, 0.520),
        "humans, document and question (10% of test)": PublishedAccuracy(None, 0.816),
        "LSTM, document and question": PublishedAccuracy(0.512, 0.418),
        MEMORY_NETWORK: PublishedAccuracy(0.704, 0.666),
    },
    "cbt-cn": {
        "humans, question alone (10% of test)": PublishedAccuracy(None, 0.644),
        "humans, document and question (10% of test)": PublishedAccuracy(None, 0.816),
        "LSTM, document and question": PublishedAccuracy(0.626, 0.560),
        MEMORY_NETWORK: PublishedAccuracy(0.642, 0.630),
    },
}
"""Systems that the paper compares with, as it reports them."""
