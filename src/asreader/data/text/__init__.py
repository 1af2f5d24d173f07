"""TEXT -> SENTENCES OF WORDS: `tokenizer` for raw text, `chinese` for its words, `sentence_splitter` for words."""
