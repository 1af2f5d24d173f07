"""A sweep: many runs from one command, resumable, on one machine or a cluster.

`search_space` lists combinations of settings, `run_plan` turns them into runs with content-hash ids, `stores` encodes
the data once, `driver` trains what is not finished, `worker` is the part that runs in a worker process, `status` reads
and writes finished.json, `successive_halving` picks the runs that continue, `summary` and `terminal` report.
"""
