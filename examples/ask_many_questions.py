"""Read a document once and answer several questions about it."""

from asreader import Reader

reader = Reader.load()
story = reader.read(
    "Amina was in the garden. Ivan went to the garden. Amina took the basket. Then Amina gave the basket to Ivan."
)
for question in ("XXXXX collected the basket.", "XXXXX got the basket from Amina.", "Ivan is now in the XXXXX."):
    answer = story.answer(question, ["Amina", "Ivan", "garden", "basket"])
    print(f"{question}  ->  {answer.answer} ({answer.confidence:.0%})")
