"""Formats of text files, item by item: rows of tables, items of JSON arrays, RDF."""
