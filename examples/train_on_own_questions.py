"""Generate questions, train a reader on them and evaluate it, without the command line."""

from pathlib import Path

from asreader.cloze.stories.generator import generate_stories
from asreader.data.formats import jsonl
from asreader.data.store import encode_examples
from asreader.inference.reader import Reader
from asreader.settings import Config, DataSettings, TrainSettings
from asreader.training import loop

train = Path("train.jsonl")
train.write_text("".join(map(jsonl.format_example, generate_stories(300, seed=1))), encoding="utf-8")
valid = Path("valid.jsonl")
valid.write_text("".join(map(jsonl.format_example, generate_stories(50, seed=2))), encoding="utf-8")

settings = Config(
    data=DataSettings(train=str(train), valid=str(valid)),
    reader={"embedding": 16, "hidden": 16},
    train=TrainSettings(epochs=1, tensorboard=False),
)
run = loop.train_run(settings, Path("run"))
scores = Reader.load(run.folder).evaluate(encode_examples(generate_stories(100, seed=3))).scores
print(f"accuracy {scores.accuracy:.3f} on {scores.questions} questions")
