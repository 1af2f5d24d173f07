"""What the engines `stacked` and `fused_attention_sum` share: stacked tensors, captured steps, evaluation of N
readers."""
