"""Formats: each file here reads one file format of cloze questions.

A format is a module with

    detect(name: str, head: str) -> bool         whether a file with this name and start is in this format
    read(file: SourceFile) -> Iterator[Example | Fault]

`name` is the path inside the folder or archive, without a compression suffix; `head` is the start of the text ("" for
a binary file). `read` yields a Fault in place of each question it cannot read and continues with the next one.
An id is unique in its file and starts with `file.stem`, or comes from the data. A module may also have

    detect_group(name: str) -> str             the subset of the data set apart from the split (CBT: NE, CN, V, P)
    format_example(example: Example) -> str    an Example as text of this format, for `convert`
"""
