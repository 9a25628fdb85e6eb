"""Features in blocks of one kind each, and which part of a model reads which block."""
