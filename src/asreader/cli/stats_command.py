"""stats: statistics of a data set."""

from __future__ import annotations

from asreader.cli.options import AsJson, Data, Format, Only, SkipBad, print_json


def stats(
    data: Data, format: Format = None, only: Only = None, skip_bad: SkipBad = False, as_json: AsJson = False
) -> None:
    """Print statistics of a data set, as in Table 1 of the paper."""
    from asreader.data.dataset import compute_data_statistics

    statistics_of = compute_data_statistics(data, format=format, only=only, skip_bad=skip_bad)
    if as_json:
        print_json({split: part.as_json() for split, part in statistics_of.items()})
    else:
        from asreader.cli.tables import format_statistics, print_renderable

        print_renderable(format_statistics(statistics_of))
