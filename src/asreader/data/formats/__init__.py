"""Formats: each file here reads one way in which cloze questions lie on disk.

A format is a module with

    detect(name: str, head: str) -> bool         does a file of this name that starts like this look like mine?
    read(member: Member) -> Iterator[Example | Fault]

`name` is the path inside the folder or archive, without a compression suffix; `head` is the start of the text ("" for
a binary file). `read` yields a Fault in place of each question it cannot read and goes on with the next one.
An id is unique in its file and starts with `member.stem`, or is the data's own. A module may also have

    group(name: str) -> str          what apart from the split tells files of a data set apart (CBT: NE, CN, V, P)
    line(example: Example) -> str    an Example as text of this format, for `convert`
"""
