"""options -> the speed-up of answering over the plain implementation: in batches, and one question at a time."""

from __future__ import annotations

from itertools import cycle

import torch

from asreader import readers
from asreader.benchmark.plain_reader import PlainDataset, PlainReader, answer_all
from asreader.benchmark.synthetic_data import SyntheticData, make_synthetic_data
from asreader.benchmark.timing import Contender, Times, choose_threads, describe_provenance, time_alternately
from asreader.benchmark.training_speed import BenchmarkOptions
from asreader.data.store import encode_examples
from asreader.inference.reader import Reader, pick_device
from asreader.inference.store_evaluation import EVALUATION_BATCH


def measure_answering(options: BenchmarkOptions, questions: int | None = None) -> dict[str, object]:
    """The row of `asreader benchmark answer`."""
    device = pick_device(options.device)
    data = make_synthetic_data(questions or EVALUATION_BATCH * (64 if device.type == "cuda" else 4))
    reader, network = _build_readers(options, data, device)
    batches, threads = _time_batches(reader, network, data, device, options.seconds * 0.7)
    single = _time_single_question(reader, network, data, device, options.seconds * 0.15)
    further_seconds = _time_further_question(reader, data, device, options.seconds * 0.15)
    return describe_provenance("answer", device) | {
        "ratio": round(batches.ratio, 2),
        "questions_per_second": round(len(data.store) / batches.our_median, 1),
        "yardstick_questions_per_second": round(len(data.store) / batches.plain_median, 1),
        "single_ratio": round(single.ratio, 2),
        "single_milliseconds": round(1000 * single.our_median, 2),
        "yardstick_single_milliseconds": round(1000 * single.plain_median, 2),
        "further_milliseconds": round(1000 * further_seconds, 2),
        "hidden": options.hidden,
        "embedding": options.embedding,
        "batch": EVALUATION_BATCH,
        "vocabulary": data.vocabulary.size,
        "threads": torch.get_num_threads(),
        "yardstick_threads": threads,
        "rounds": len(batches.ours),
    }


def _build_readers(options: BenchmarkOptions, data: SyntheticData, device: torch.device) -> tuple[Reader, PlainReader]:
    reader: dict[str, object] = {"hidden": options.hidden, "embedding": options.embedding}
    ours = readers.build("attention_sum", data.vocabulary.size, reader).to(device).eval()
    plain = PlainReader(data.vocabulary.size, options.embedding, options.hidden).to(device).eval()
    return Reader(ours, data.vocabulary, device=device), plain


def _time_batches(
    reader: Reader, network: PlainReader, data: SyntheticData, device: torch.device, seconds: float
) -> tuple[Times, int]:
    """Times for the whole store, and the threads of the plain reader; ours chooses its own."""
    dataset = PlainDataset(data.store, data.vocabulary, device)
    ours = Contender(lambda: reader.evaluate(data.store), torch.get_num_threads())
    ours.work()
    plain = choose_threads(lambda: answer_all(network, dataset, EVALUATION_BATCH), device)
    return time_alternately(ours, plain, device, seconds), plain.threads


def _time_single_question(
    reader: Reader, network: PlainReader, data: SyntheticData, device: torch.device, seconds: float
) -> Times:
    """Times for one question with its document.

    Ours starts from words and ends with an Answer; the plain reader starts from word numbers and ends with an index.
    """
    example = data.single_example
    dataset = PlainDataset(encode_examples([example]), data.vocabulary, device)
    ours = Contender(
        lambda: reader.answer(example.words, example.question, example.candidates), torch.get_num_threads()
    )
    plain = choose_threads(lambda: answer_all(network, dataset, 1), device)
    ours.work()
    return time_alternately(ours, plain, device, seconds)


def _time_further_question(reader: Reader, data: SyntheticData, device: torch.device, seconds: float) -> float:
    """Median seconds for another question about a document that was read before."""
    example = data.single_example
    document = reader.read(example.words)
    questions = cycle(data.further_questions)
    ours = Contender(lambda: document.answer(next(questions), example.candidates), torch.get_num_threads())
    ours.work()
    nothing = Contender(lambda: None, 1)
    return time_alternately(ours, nothing, device, seconds, max_rounds=len(data.further_questions)).our_median
