"""sizes -> how many times as fast as the yardstick questions are answered: in batches, alone, on a document known."""

from __future__ import annotations

import statistics
from itertools import cycle

import torch

from asreader import readers
from asreader.benchmark.material import Material, material
from asreader.benchmark.timing import Times, Way, alternate, at_its_best, provenance
from asreader.benchmark.training import Sizes
from asreader.benchmark.yardstick import PlainData, Yardstick, answers
from asreader.data.store import encode_examples
from asreader.inference.reader import Reader, pick_device
from asreader.inference.store_evaluation import EVALUATION_BATCH


def answering(sizes: Sizes, questions: int | None = None) -> dict[str, object]:
    """The row of `asreader benchmark answer`."""
    device = pick_device(sizes.device)
    made = material(questions or EVALUATION_BATCH * (64 if device.type == "cuda" else 4))
    reader, network = _readers(sizes, made, device)
    batches, threads = _in_batches(reader, network, made, device, sizes.seconds * 0.7)
    alone, further = _alone(reader, network, made, device, sizes.seconds * 0.3)
    taken, single = batches.seconds, alone.seconds
    return provenance("answer", device) | {
        "ratio": round(batches.ratio, 2),
        "questions_per_second": round(len(made.store) / taken[0], 1),
        "yardstick_questions_per_second": round(len(made.store) / taken[1], 1),
        "single_ratio": round(alone.ratio, 2),
        "single_milliseconds": round(1000 * single[0], 2),
        "yardstick_single_milliseconds": round(1000 * single[1], 2),
        "further_milliseconds": round(1000 * further, 2),
        "hidden": sizes.hidden,
        "embedding": sizes.embedding,
        "batch": EVALUATION_BATCH,
        "vocabulary": made.vocabulary.size,
        "threads": torch.get_num_threads(),
        "yardstick_threads": threads,
        "rounds": len(batches.ours),
    }


def _readers(sizes: Sizes, made: Material, device: torch.device) -> tuple[Reader, Yardstick]:
    options: dict[str, object] = {"hidden": sizes.hidden, "embedding": sizes.embedding}
    ours = readers.build("attention_sum", made.vocabulary.size, options).to(device).eval()
    plain = Yardstick(made.vocabulary.size, sizes.embedding, sizes.hidden).to(device).eval()
    return Reader(ours, made.vocabulary, device=device), plain


def _in_batches(
    reader: Reader, network: Yardstick, made: Material, device: torch.device, seconds: float
) -> tuple[Times, int]:
    """Times for the whole store, and the threads of the yardstick; ours decides for itself."""
    data = PlainData(made.store, made.vocabulary, device)
    ours = Way(lambda: reader.evaluate(made.store), torch.get_num_threads())
    ours.work()
    plain = at_its_best(lambda: answers(network, data, EVALUATION_BATCH), device)
    return alternate(ours, plain, device, seconds), plain.threads


def _alone(
    reader: Reader, network: Yardstick, made: Material, device: torch.device, seconds: float
) -> tuple[Times, float]:
    """Times for one question with its document, and seconds for a further one on a document already read.

    Ours begins with words and ends with an Answer in words; the yardstick begins with numbers and ends with one.
    """
    example = made.alone
    data = PlainData(encode_examples([example]), made.vocabulary, device)
    ours = Way(lambda: reader.answer(example.words, example.question, example.candidates), torch.get_num_threads())
    plain = at_its_best(lambda: answers(network, data, 1), device)
    ours.work()
    times = alternate(ours, plain, device, seconds / 2)
    book, questions = reader.read(example.words), cycle(made.further)
    again = Way(lambda: book.answer(next(questions), example.candidates), torch.get_num_threads())
    again.work()
    further = alternate(again, Way(lambda: None, 1), device, seconds / 2, most=len(made.further))
    return times, statistics.median(further.ours)
