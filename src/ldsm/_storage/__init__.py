"""Files: the model container, atomic writing, manifests, text, strings and arrays on disk."""
