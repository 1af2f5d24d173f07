"""python -m asreader -> the command line."""

from asreader.cli import main

main()
