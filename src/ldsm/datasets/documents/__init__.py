"""Readers and writers of documents with label names."""
