"""The hand-written step of the one-layer Attention Sum Reader: every gradient written out, work on several streams."""
