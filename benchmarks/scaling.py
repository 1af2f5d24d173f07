"""measured rows -> what large sweeps need: `python benchmarks/scaling.py` updates the tables of docs/scaling.md.

    python benchmarks/scaling.py                              # reads the rows in benchmarks/results
    python benchmarks/scaling.py sizes KIND STORE PREDICTIONS # prints a row for benchmarks/results/scaling.jsonl

Nothing is measured on data of these sizes: measured rates are multiplied by numbers of questions. The last of several
rows of one kind is used, and the number of readers trained together that is fastest per reader.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results"
MAKER_RESULTS = ROOT / "reproduce" / "results"
DOCUMENT = ROOT / "docs" / "scaling.md"
BEGIN, END = "<!-- written by benchmarks/scaling.py -->", "<!-- end of what is written -->"

READERS = 84  # the largest ensemble of the paper
EPOCHS = 3  # the paper: about two; the third shows that the second was the best
K40_HOURS = 10 + 22 / 60  # the paper's epoch on CNN
CHECKPOINTS = (60, 900)  # seconds between checkpoints: the default, and a value for shared disks
GPUS = (1, 8)
FIXED_ROWS = 3 + 100  # padding, gap, separator, anonymous vectors


@dataclass(frozen=True)
class DataSize:
    """Size of a data set and of the readers trained on it."""

    questions: int
    words: int
    question_words: int
    vocabulary: int
    embedding: int
    hidden: int
    valid: int
    sizes: str  # which measured sizes of stores and predictions apply to it

    @property
    def parameters(self) -> int:
        """Weights of a reader: the embedding table and two bidirectional GRUs."""
        gru = 3 * self.hidden * (self.embedding + self.hidden + 2)
        return (self.vocabulary + FIXED_ROWS) * self.embedding + 2 * 2 * gru

    @property
    def device_gigabytes(self) -> float:
        """GB of the data on a device: four plus two bytes per document word, and the fields of each question."""
        return self.questions * (6 * self.words + 4 * self.question_words + 2 * (8 + 4) + 2 + 1) / 1e9


SHAPES = {  # of benchmarks/together.py
    "ne": DataSize(108_719, 433, 28, 53_000, 384, 384, 2_000, "books"),
    "cnn": DataSize(380_298, 762, 28, 118_497, 128, 384, 3_924, "news"),
}
BOOKTEST = DataSize(14_000_000, 433, 28, 200_000, 384, 384, 2_000, "books")


@dataclass(frozen=True)
class SweepNeeds:
    """What a sweep needs: hours of one GPU, GB, MB per second."""

    readers_together: int
    epoch_seconds: float
    alone_seconds: float
    hours: float
    device: float
    reserved: float
    host: float
    store: float
    run: float
    traffic: tuple[float, ...]
    preparing_minutes: float


def read_rows(name: str, folder: Path = RESULTS) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


def find_last_row(rows: Iterable[dict[str, Any]], **wanted: object) -> dict[str, Any]:
    return [row for row in rows if all(row.get(key) == value for key, value in wanted.items())][-1]


def estimate_needs(data: DataSize, shape: str) -> SweepNeeds:
    """Scale the rates of `shape`, the similar data set that was measured, by the number of questions."""
    measured = [row for row in read_rows("together") if row["benchmark"] == "together" and row["shape"] == shape]
    counts = {row["readers"] for row in measured}
    last_rows = [find_last_row(measured, readers=count) for count in counts]
    best = min(last_rows, key=lambda row: row["seconds_per_reader_and_epoch"])
    alone = find_last_row(measured, readers=1)
    like = SHAPES[shape]
    scale = data.questions / like.questions
    extra_rows = (data.vocabulary - like.vocabulary) * data.embedding * 3 * 4 / 1e9  # with the two moments of Adam
    extra = data.device_gigabytes - like.device_gigabytes + best["readers"] * extra_rows
    sizes = find_last_row(read_rows("scaling"), benchmark="sizes", kind=data.sizes)
    store = data.questions * sizes["store_bytes_per_question"] / 1e9
    prepare = find_last_row(read_rows("prepare"), benchmark="prepare")
    read = prepare["questions"] * SHAPES["ne"].words  # the questions of that row are like these
    rare = find_last_row(read_rows("scaling"), benchmark="rare")
    bytes_per_word = rare["bytes"] / rare["questions"] / rare["words_per_question"]
    return SweepNeeds(
        readers_together=best["readers"],
        epoch_seconds=scale * best["seconds_per_reader_and_epoch"],
        alone_seconds=scale * alone["seconds_per_reader_and_epoch"],
        hours=READERS * EPOCHS * scale * best["seconds_per_reader_and_epoch"] / 3600,
        device=best["peak_GB"] + extra,
        reserved=best["reserved_GB"] + extra,
        host=data.device_gigabytes + store + data.questions * (data.words + data.question_words) * bytes_per_word / 1e9,
        store=store,
        run=(16 * data.parameters + data.valid * sizes["prediction_bytes_per_question"]) / 1e9,
        traffic=tuple(best["readers"] * 12 * data.parameters / 1e6 / seconds for seconds in CHECKPOINTS),
        preparing_minutes=data.questions * data.words * prepare["seconds"] / read / 60,
    )


def format_tables() -> str:
    """The text between the two marks of docs/scaling.md."""
    cnn, books = estimate_needs(SHAPES["cnn"], "cnn"), estimate_needs(BOOKTEST, "ne")
    sets, both = (SHAPES["cnn"], BOOKTEST), (cnn, books)
    making = find_last_row(read_rows("cloze", MAKER_RESULTS), benchmark="cloze-train", type="ne")
    making_minutes = BOOKTEST.questions * making["seconds"] / making["questions"] / 60
    device = [row for row in read_rows("together") if row["benchmark"] == "together"][-1]["device"]
    body = [
        ["", "CNN-size data", "BookTest-size corpus"],
        ["---", "---:", "---:"],
        ["training questions", *(f"{data.questions:,}" for data in sets)],
        ["words a document", *(f"{data.words:,}" for data in sets)],
        ["words with a vector, E, H", *(f"{data.vocabulary:,}, {data.embedding}, {data.hidden}" for data in sets)],
        ["weights of a reader", *(f"{data.parameters / 1e6:.1f} million" for data in sets)],
        ["one reader alone, an epoch", *(f"{need.alone_seconds:,.0f} s" for need in both)],
        ["readers side by side on a GPU", *(str(need.readers_together) for need in both)],
        ["a reader among them, an epoch", *(f"{need.epoch_seconds:,.0f} s" for need in both)],
        [f"**GPU hours, {READERS} readers, {EPOCHS} epochs**", *(f"**{need.hours:.1f}**" for need in both)],
        *([f"... on {gpus} GPUs", *(f"{need.hours / gpus:.1f} h" for need in both)] for gpus in GPUS if gpus > 1),
        ["GPU memory in use (reserved)", *(f"{need.device:.0f} GB ({need.reserved:.0f} GB)" for need in both)],
        ["of that, the data", *(f"{data.device_gigabytes:.1f} GB" for data in sets)],
        ["memory of the host, a worker", *(f"{need.host:.1f} GB" for need in both)],
        ["disk: the store", *(f"{need.store:.1f} GB" for need in both)],
        ["disk: a run", *(f"{need.run:.2f} GB" for need in both)],
        [f"disk: {READERS} runs", *(f"{READERS * need.run:.0f} GB" for need in both)],
        ["network: each worker reads, once", *(f"{need.store:.1f} GB" for need in both)],
        *(
            [f"network: each GPU writes, a state every {seconds} s", *(f"{written:.0f} MB/s" for written in traffic)]
            for seconds, *traffic in zip(CHECKPOINTS, cnn.traffic, books.traffic, strict=True)
        ),
        ["reading and encoding, two processors", *(f"{need.preparing_minutes:.1f} min" for need in both)],
        ["making the questions from books, two processors", "", f"{making_minutes:.0f} min"],
    ]  # fmt: skip
    paper = READERS * EPOCHS * K40_HOURS
    return "\n".join(
        [
            f"GPU rates are those of one {device}.",
            "",
            *(f"| {' | '.join(line)} |" for line in body),
            "",
            f"On the K40 of the paper the {READERS * EPOCHS} epochs on CNN would take {paper:,.0f} hours, "
            f"{paper / cnn.hours:,.0f} times as long.",
        ]
    )


def update_tables(text: str) -> str:
    """Replace the tables of the document by those of the recorded rows."""
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n{format_tables()}\n{END}{tail}"


def measure_sizes(kind: str, store: Path, predictions: Path) -> dict[str, Any]:
    """Bytes per question of a store and a prediction file."""
    index = json.loads(next(store.rglob("store.json")).read_text(encoding="utf-8"))
    stored = sum(path.stat().st_size for path in store.rglob("*") if path.is_file())
    predicted = predictions.read_bytes().count(b"\n")
    return {
        "benchmark": "sizes",
        "kind": kind,
        "questions": index["questions"],
        "store_bytes_per_question": round(stored / index["questions"]),
        "prediction_bytes_per_question": round(predictions.stat().st_size / predicted),
    }


def main(arguments: Sequence[str]) -> None:
    match arguments:
        case ["sizes", kind, store, predictions]:
            print(json.dumps(measure_sizes(kind, Path(store), Path(predictions))))
        case []:
            DOCUMENT.write_text(update_tables(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
        case ["-h" | "--help"]:
            print(__doc__)
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
