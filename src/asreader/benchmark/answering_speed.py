"""sizes -> how many times as fast as the yardstick questions are answered: in batches, alone, on a document known."""

from __future__ import annotations

import statistics
from itertools import cycle

import torch

from asreader import readers
from asreader.benchmark.plain_reader import PlainDataset, PlainReader, answer_all
from asreader.benchmark.synthetic_data import SyntheticData, make_synthetic_data
from asreader.benchmark.timing import Contender, Times, choose_threads, describe_provenance, time_alternately
from asreader.benchmark.training_speed import BenchmarkOptions
from asreader.data.store import encode
from asreader.inference.reader import EVALUATION_BATCH, Reader, pick_device


def measure_answering(sizes: BenchmarkOptions, questions: int | None = None) -> dict[str, object]:
    """The row of `asreader benchmark answer`."""
    device = pick_device(sizes.device)
    made = make_synthetic_data(questions or EVALUATION_BATCH * (64 if device.type == "cuda" else 4))
    reader, network = _readers(sizes, made, device)
    batches, threads = _in_batches(reader, network, made, device, sizes.seconds * 0.7)
    alone, further = _alone(reader, network, made, device, sizes.seconds * 0.3)
    taken, single = batches.seconds, alone.seconds
    return describe_provenance("answer", device) | {
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


def _readers(sizes: BenchmarkOptions, made: SyntheticData, device: torch.device) -> tuple[Reader, PlainReader]:
    options: dict[str, object] = {"hidden": sizes.hidden, "embedding": sizes.embedding}
    ours = readers.build("attention_sum", made.vocabulary.size, options).to(device).eval()
    plain = PlainReader(made.vocabulary.size, sizes.embedding, sizes.hidden).to(device).eval()
    return Reader(ours, made.vocabulary, device=device), plain


def _in_batches(
    reader: Reader, network: PlainReader, made: SyntheticData, device: torch.device, seconds: float
) -> tuple[Times, int]:
    """Times for the whole store, and the threads of the yardstick; ours decides for itself."""
    data = PlainDataset(made.store, made.vocabulary, device)
    ours = Contender(lambda: reader.evaluate(made.store), torch.get_num_threads())
    ours.work()
    plain = choose_threads(lambda: answer_all(network, data, EVALUATION_BATCH), device)
    return time_alternately(ours, plain, device, seconds), plain.threads


def _alone(
    reader: Reader, network: PlainReader, made: SyntheticData, device: torch.device, seconds: float
) -> tuple[Times, float]:
    """Times for one question with its document, and seconds for a further one on a document already read.

    Ours begins with words and ends with an Answer in words; the yardstick begins with numbers and ends with one.
    """
    example = made.alone
    data = PlainDataset(encode([example]), made.vocabulary, device)
    ours = Contender(
        lambda: reader.answer(example.words, example.question, example.candidates), torch.get_num_threads()
    )
    plain = choose_threads(lambda: answer_all(network, data, 1), device)
    ours.work()
    times = time_alternately(ours, plain, device, seconds / 2)
    book, questions = reader.read(example.words), cycle(made.further_questions)
    again = Contender(lambda: book.answer(next(questions), example.candidates), torch.get_num_threads())
    again.work()
    further = time_alternately(again, Contender(lambda: None, 1), device, seconds / 2, most=len(made.further_questions))
    return times, statistics.median(further.ours)
