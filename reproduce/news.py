"""news articles -> statistics of the questions made from them: python reproduce/news.py NEWS_FILE [--sample N]

Prints questions and entities per article, the fraction of highlights used, and the time. `--sample 20` prints 20 random
questions with their original names instead, for manual inspection.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from pathlib import Path

from asreader.cloze.news import article_questions, articles
from asreader.cloze.news.articles import Article
from asreader.data.discovery import find_files


def main(path: Path, sample: int, seed: int) -> None:
    found = [item for member in find_files(path) for item in articles.read_articles(member)]
    texts = [item for item in found if isinstance(item, Article)]
    if sample:
        print_sample(texts, sample, seed)
        return
    start = time.perf_counter()
    made = [(article, list(article_questions.make_article_questions(article, seed))) for article in texts]
    seconds = time.perf_counter() - start
    highlights = sum(len(article.highlights) for article in texts)
    answered = sum(len({question.example.id.rpartition(".")[0] for question in questions}) for _, questions in made)
    shared = [there for article in texts for there in article_questions.find_highlight_entities(article).values()]
    counts = [len(questions[0].example.candidates) for _, questions in made if questions]
    row = {
        "benchmark": "news",
        "articles": len(texts),
        "faults": len(found) - len(texts),
        "questions": (total := sum(len(questions) for _, questions in made)),
        "questions_per_article": round(total / len(texts), 2),
        "candidates_mean": round(sum(counts) / max(1, len(counts)), 1),
        "candidates_max": max(counts, default=0),
        "highlights_with_question": round(answered / highlights, 3),
        "highlight_entities_in_article": round(sum(shared) / max(1, len(shared)), 3),
        "seconds_per_1000_articles": round(1000 * seconds / len(texts), 1),
    }
    print(json.dumps(row))


def print_sample(texts: list[Article], sample: int, seed: int) -> None:
    """Print one question of each of `sample` random articles with its original names."""
    generator = random.Random(seed)
    shown = 0
    for article in generator.sample(texts, len(texts)):
        questions = list(article_questions.make_article_questions(article, seed))
        if questions and shown < sample:
            shown += 1
            question = generator.choice(questions)
            example, names = question.example, question.names
            print(f"{shown}. {' '.join(article_questions.restore_names(example.question, names))}")
            print(f"   answer: {names[example.answer or '']}   ({example.id})")
            print(
                f"   {len(example.candidates)} candidates: "
                f"{', '.join(article_questions.restore_names(example.candidates, names))}\n"
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("path", type=Path, metavar="NEWS_FILE")
    parser.add_argument("--sample", type=int, default=0, metavar="N", help="print N questions")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    main(arguments.path, arguments.sample, arguments.seed)
