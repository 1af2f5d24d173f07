"""a finished run -> the text of card.md: reader, training data, recipe, accuracy, limits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from asreader.data.vocabulary import Vocabulary
from asreader.evaluation.metrics import Scores
from asreader.settings import Config, TrainSettings

_LIMITS = """## What it cannot do

It points at words of the document: an answer that does not stand there cannot be given. It knows the kind of text it
was trained on and no facts of the world. Its confidence is the answer's share of the attention on all candidates.
"""


def format_card(settings: Config, vocabulary: Vocabulary, questions: int, scores: Scores | None) -> str:
    """The text of card.md."""
    options = ", ".join(f"{key} {value}" for key, value in settings.reader_options.items()) or "defaults"
    lines = [
        f"# {settings.reader_name} ({options})",
        "",
        f"- trained on `{Path(settings.data.train).name}`: {questions:,} questions, seed {settings.train.seed}",
        *_list_recipe_lines(settings.train),
        f"- vocabulary: {len(vocabulary.words):,} words, {vocabulary.unknown} vectors for unknown words",
    ]
    if scores is not None:
        low, high = scores.interval
        lines.append(
            f"- validation on `{Path(settings.data.valid).name}`: accuracy {scores.accuracy:.4f} "
            f"(95% interval {low:.4f} to {high:.4f}, {scores.questions:,} questions)"
        )
    return "\n".join([*lines, "", _LIMITS])


def _list_recipe_lines(options: TrainSettings) -> Iterator[str]:
    """Lines on the parts of the training recipe that differ from the paper."""
    if options.teacher:
        files = ", ".join(f"`{path.name}`" for path in options.teacher_files)
        yield f"- teacher: the mean of {files}, with {options.teacher_weight:g} of the loss; the answers have the rest"
    schedule = [f"warm-up over {options.warmup:,} steps"] if options.warmup else []
    schedule += [f"{options.decay} decay over at most {options.epochs} epochs"] if options.decay != "none" else []
    if schedule:
        yield f"- learning rate: {options.learning_rate:g}, {', '.join(schedule)}"
    if options.average:
        yield f"- weights: the moving average of those of all steps, of which a step keeps {options.average:g}"
