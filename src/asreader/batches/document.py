"""one document, question after question -> Batches of one: what depends on the document alone is computed once.

`Batcher` defines the result: it makes the same of a store that holds this one question.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from asreader.batches.batch import NO_ANSWER_INDEX, NO_CANDIDATE, Batch, Words
from asreader.batches.question_placement import place_question
from asreader.data.example import Sentence, propose_candidates
from asreader.data.occurrences import find_occurrences
from asreader.data.vocabulary import ENTITY, UNKNOWN, Vocabulary

Positions = tuple[int, ...]


@dataclass(frozen=True)
class CandidateWords:
    """Candidates: the one word whose vector stands for each, its positions in the document, and whether it counts."""

    words: tuple[str, ...]
    heads: tuple[str, ...]
    positions: tuple[Positions, ...]
    eligible: tuple[bool, ...]

    def place_mentions(self, length: int) -> Tensor:
        """candidate_at of a document of this length."""
        depth = [0] * length
        mentions: list[list[int]] = [[NO_CANDIDATE] * length]
        for candidate, positions in enumerate(self.positions):
            for position in positions:
                if depth[position] == len(mentions):
                    mentions.append([NO_CANDIDATE] * length)
                mentions[depth[position]][position] = candidate
                depth[position] += 1
        return torch.tensor(mentions).T[None].contiguous()


@dataclass(frozen=True)
class QuestionBatch:
    """A question as a Batch of one, its candidates in words, and where in the Batch the document starts and stops."""

    batch: Batch
    candidates: CandidateWords
    start: int
    stop: int


class EncodedDocument:
    """The words of a document with their positions and their rows."""

    def __init__(self, sentences: tuple[Sentence, ...], vocabulary: Vocabulary, question_at: str = "apart") -> None:
        self._sentences, self._vocabulary, self._question_at = sentences, vocabulary, question_at
        self._words = tuple(chain(*sentences))
        positions: dict[str, list[int]] = {}
        for position, word in enumerate(self._words):
            positions.setdefault(word, []).append(position)
        self._positions = {word: tuple(where) for word, where in positions.items()}
        self._pools = {UNKNOWN: vocabulary.unknown_rows, ENTITY: vocabulary.entity_rows}
        self._row, self._assigned = self._assign_rows(positions, {}, {UNKNOWN: 0, ENTITY: 0})
        self._rows = [self._row[word] for word in self._words]

    @cached_property
    def words(self) -> Words:
        """The document by itself."""
        return _words(self._rows)

    def make_batch(self, question: Sentence, candidates: tuple[str, ...] = ()) -> QuestionBatch:
        """A question about these candidates or, without any, about every word that may be proposed."""
        chosen = self._locate_candidates(candidates) if candidates else self._proposed
        row, _ = self._assign_rows((*question, *chosen.heads), self._row, self._assigned)
        question_rows = [row[word] for word in question]
        placed = place_question(np.array(question_rows, np.int32), self._question_at)
        before, behind = (rows.tolist() for rows in placed)
        start, stop = len(before), len(before) + len(self._rows)
        document = self.words if self._question_at == "apart" else _words([*before, *self._rows, *behind])
        column = torch.arange(document.rows.shape[1])
        candidate_at = chosen.place_mentions(len(self._rows))
        if before or behind:
            candidate_at = functional.pad(candidate_at, (0, 0, start, len(behind)), value=NO_CANDIDATE)
        batch = Batch(
            document=document,
            question=_words(question_rows),
            in_document=((column >= start) & (column < stop))[None],
            candidates=torch.tensor([[row[word] for word in chosen.heads]], dtype=torch.int64),
            eligible=torch.tensor([chosen.eligible], dtype=torch.bool),
            candidate_at=candidate_at,
            answers=torch.tensor([NO_ANSWER_INDEX]),
        )
        return QuestionBatch(batch, chosen, start, stop)

    def _assign_rows(
        self, words: Iterable[str], known: Mapping[str, int], assigned: Mapping[int, int]
    ) -> tuple[dict[str, int], dict[int, int]]:
        """Rows of these words, and how many of each pool are assigned then: `assign_anonymous_rows`, continued."""
        row, assigned = dict[str, int](), dict(assigned)
        for word in words:
            if word not in row:
                number = known[word] if word in known else self._vocabulary.row(word)
                if number < 0:
                    pool, before = self._pools[number], assigned[number]
                    assigned[number] += 1
                    number = pool[before % len(pool)]
                row[word] = number
        return row, assigned

    @cached_property
    def _proposed(self) -> CandidateWords:
        words = propose_candidates(self._sentences)
        return CandidateWords(words, words, tuple(self._positions[word] for word in words), (True,) * len(words))

    def _locate_candidates(self, candidates: tuple[str, ...]) -> CandidateWords:
        """As the data has them: an empty candidate has no positions, nor has a further copy of one."""
        heads, positions, eligible, seen = [], [], [], set[str]()
        for candidate in candidates:
            parts = candidate.split()
            counts = bool(parts) and candidate not in seen
            seen.add(candidate)
            heads.append(parts[-1] if parts else candidate)
            positions.append(self._find_covered(parts) if counts else ())
            eligible.append(counts)
        return CandidateWords(candidates, tuple(heads), tuple(positions), tuple(eligible))

    def _find_covered(self, parts: list[str]) -> Positions:
        """The positions that these words, side by side, cover."""
        if len(parts) == 1 or parts[0] not in self._positions:
            return self._positions.get(parts[0], ())
        starts = find_occurrences(self._words, " ".join(parts))
        return tuple(sorted({start + offset for start in starts for offset in range(len(parts))}))


def _words(rows: list[int]) -> Words:
    """One sequence, which has no padding."""
    return Words(torch.tensor([rows]), torch.tensor([len(rows)]))
