"""Add a reader in one file: a bilinear Attention Sum Reader, unknown to the engines, trained several at once.

python examples/add_a_reader.py
"""

from __future__ import annotations

import sys
from pathlib import Path

from torch import nn

from asreader import readers
from asreader.batches.batch import Batch, Words
from asreader.cloze.stories.generator import generate_stories
from asreader.data.formats import jsonl
from asreader.ops.pointer_sum import pointer_sum
from asreader.readers import Reading
from asreader.readers.layers import BidirectionalGRU, Embedding, EncodedWords, attend
from asreader.settings import parse_settings
from asreader.training import loop


class BilinearSum(nn.Module):
    """Attention proportional to exp(f_i W g) in the place of exp(f_i g): the question is projected first."""

    def __init__(self, vocabulary: int, *, embedding: int = 32, hidden: int = 32) -> None:
        super().__init__()
        self.embed = Embedding(vocabulary, embedding)
        self.document_encoder = BidirectionalGRU(embedding, hidden)
        self.question_encoder = BidirectionalGRU(embedding, hidden)
        self.project = nn.Linear(2 * hidden, 2 * hidden, bias=False)

    def read(self, document: Words) -> EncodedWords:
        """Every word in the context of the whole document."""
        return self.document_encoder(self.embed.embed(document))

    def answer(self, document: EncodedWords, batch: Batch) -> Reading:
        """Attend to the document with the projected question, then sum for each candidate."""
        question = self.project(self.question_encoder(self.embed.embed(batch.question)).last)
        log_attention = attend(document, question, batch.in_document)
        return Reading(log_attention, pointer_sum(log_attention, batch.candidate_at, batch.candidate_count))


def main(folder: Path, count: int = 3) -> None:
    """Train readers side by side on generated stories."""
    readers.register("bilinear_sum", BilinearSum)
    for name, questions, seed in (("train", 400, 1), ("valid", 100, 2)):
        (folder / f"{name}.jsonl").write_text("".join(map(jsonl.format_example, generate_stories(questions, seed))))
    settings = parse_settings(
        '[reader]\nname = "bilinear_sum"\n[train]\nengine = "stacked"\nepochs = 2\nlearning_rate = 0.01\n',
        [f"data.train={folder / 'train.jsonl'}", f"data.valid={folder / 'valid.jsonl'}"],
    )
    for run in loop.train(settings, folder / "runs", count=count):
        print(run.folder)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
