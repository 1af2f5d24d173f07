"""`asreader benchmark`: this package against a plain PyTorch implementation, on the same data in the same process.

`synthetic_data` makes the data, `plain_reader` is the plain implementation, `training_speed` and `answering_speed`
compare, `timing` measures.
"""
