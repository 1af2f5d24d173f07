"""measured rows -> what large sweeps need: `python benchmarks/scaling.py` writes the tables of docs/scaling.md anew.

    python benchmarks/scaling.py                              # from the rows in benchmarks/results
    python benchmarks/scaling.py sizes KIND STORE PREDICTIONS # prints a row for benchmarks/results/scaling.jsonl

Nothing here is measured on data of these sizes: rates of measured rows are multiplied with numbers of questions. Of
several rows of one kind the last counts, of several numbers of readers side by side the quickest.
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
EPOCHS = 3  # the paper: about two, and one more shows that the second was the best
K40_HOURS = 10 + 22 / 60  # the paper's epoch on CNN
CHECKPOINTS = (60, 900)  # seconds between saved states: the default, and what a shared disk likes better
GPUS = (1, 8)
FIXED_ROWS = 3 + 100  # padding, gap, separator, anonymous vectors


@dataclass(frozen=True)
class Data:
    """A data set, and the readers that are trained on it."""

    questions: int
    words: int
    asked: int
    vocabulary: int
    embedding: int
    hidden: int
    valid: int
    sizes: str  # which measured sizes of stores and predictions are like this data set's

    @property
    def parameters(self) -> int:
        """Weights of a reader: the table, and two bidirectional GRUs."""
        gru = 3 * self.hidden * (self.embedding + self.hidden + 2)
        return (self.vocabulary + FIXED_ROWS) * self.embedding + 2 * 2 * gru

    @property
    def resident(self) -> float:
        """GB of the data on a device: four bytes and two for each word, and what each question has once."""
        return self.questions * (6 * self.words + 4 * self.asked + 2 * (8 + 4) + 2 + 1) / 1e9


SHAPES = {  # of benchmarks/together.py
    "ne": Data(108_719, 433, 28, 53_000, 384, 384, 2_000, "books"),
    "cnn": Data(380_298, 762, 28, 118_497, 128, 384, 3_924, "news"),
}
BOOKTEST = Data(14_000_000, 433, 28, 200_000, 384, 384, 2_000, "books")


@dataclass(frozen=True)
class Needs:
    """What a sweep needs; hours of one GPU, GB, MB a second."""

    side_by_side: int
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


def rows(name: str, folder: Path = RESULTS) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


def last(found: Iterable[dict[str, Any]], **wanted: object) -> dict[str, Any]:
    return [row for row in found if all(row.get(key) == value for key, value in wanted.items())][-1]


def needs(data: Data, shape: str) -> Needs:
    """Rates of `shape`, the measured data set that is like this one, for each question."""
    measured = [row for row in rows("together") if row["benchmark"] == "together" and row["shape"] == shape]
    counts = {row["readers"] for row in measured}
    best = min((last(measured, readers=count) for count in counts), key=lambda row: row["seconds_per_reader_and_epoch"])
    like, alone = SHAPES[shape], last(measured, readers=1)
    more = data.questions / like.questions
    rarer = (data.vocabulary - like.vocabulary) * data.embedding * 3 * 4 / 1e9  # rows, each with Adam's two moments
    extra = data.resident - like.resident + best["readers"] * rarer
    sizes = last(rows("scaling"), benchmark="sizes", kind=data.sizes)
    store = data.questions * sizes["store_bytes_per_question"] / 1e9
    prepare = last(rows("prepare"), benchmark="prepare")
    read = prepare["questions"] * SHAPES["ne"].words  # the questions of that row are like these
    rare = last(rows("scaling"), benchmark="rare")
    share = rare["bytes"] / rare["questions"] / rare["words_per_question"]  # bytes for each word that is read
    return Needs(
        side_by_side=best["readers"],
        epoch_seconds=more * best["seconds_per_reader_and_epoch"],
        alone_seconds=more * alone["seconds_per_reader_and_epoch"],
        hours=READERS * EPOCHS * more * best["seconds_per_reader_and_epoch"] / 3600,
        device=best["peak_GB"] + extra,
        reserved=best["reserved_GB"] + extra,
        host=data.resident + store + data.questions * (data.words + data.asked) * share / 1e9,
        store=store,
        run=(16 * data.parameters + data.valid * sizes["prediction_bytes_per_question"]) / 1e9,
        traffic=tuple(best["readers"] * 12 * data.parameters / 1e6 / seconds for seconds in CHECKPOINTS),
        preparing_minutes=data.questions * data.words * prepare["seconds"] / read / 60,
    )


def tables() -> str:
    """What stands between the marks of docs/scaling.md."""
    cnn, books = needs(SHAPES["cnn"], "cnn"), needs(BOOKTEST, "ne")
    sets, both = (SHAPES["cnn"], BOOKTEST), (cnn, books)
    making = last(rows("cloze", MAKER_RESULTS), benchmark="cloze-train", type="ne")
    making_minutes = BOOKTEST.questions * making["seconds"] / making["questions"] / 60
    device = [row for row in rows("together") if row["benchmark"] == "together"][-1]["device"]
    body = [
        ["", "CNN-size data", "BookTest-size corpus"],
        ["---", "---:", "---:"],
        ["training questions", *(f"{data.questions:,}" for data in sets)],
        ["words a document", *(f"{data.words:,}" for data in sets)],
        ["words with a vector, E, H", *(f"{data.vocabulary:,}, {data.embedding}, {data.hidden}" for data in sets)],
        ["weights of a reader", *(f"{data.parameters / 1e6:.1f} million" for data in sets)],
        ["one reader alone, an epoch", *(f"{need.alone_seconds:,.0f} s" for need in both)],
        ["readers side by side on a GPU", *(str(need.side_by_side) for need in both)],
        ["a reader among them, an epoch", *(f"{need.epoch_seconds:,.0f} s" for need in both)],
        [f"**GPU hours, {READERS} readers, {EPOCHS} epochs**", *(f"**{need.hours:.1f}**" for need in both)],
        *([f"... on {gpus} GPUs", *(f"{need.hours / gpus:.1f} h" for need in both)] for gpus in GPUS if gpus > 1),
        ["GPU memory in use (reserved)", *(f"{need.device:.0f} GB ({need.reserved:.0f} GB)" for need in both)],
        ["of that, the data", *(f"{data.resident:.1f} GB" for data in sets)],
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


def written(text: str) -> str:
    """The document with its tables as they are now."""
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n{tables()}\n{END}{tail}"


def sizes(kind: str, store: Path, predictions: Path) -> dict[str, Any]:
    """What a store and a prediction file take on disk."""
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
            print(json.dumps(sizes(kind, Path(store), Path(predictions))))
        case []:
            DOCUMENT.write_text(written(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
