"""Benchmarks: this product against the plain PyTorch way, on the same data in the same run.

`material` makes the data, `yardstick` is the plain way, `training` and `answering` compare, `timing` measures.
"""
