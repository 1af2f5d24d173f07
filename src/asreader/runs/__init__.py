"""A run folder: the only package that knows the names of its files.

`file_names` names the files, `folder` reads and writes them, `metrics_log` parses metrics.jsonl,
`settings_diff` compares settings, `seed_groups` groups runs that differ in their seed alone, `card` formats card.md.
"""
