"""FILES -> EXAMPLES -> STORE: `dataset` reads any DATA, `store` encodes it, `vocabulary` maps words to rows."""
