"""Encoders, which turn texts into dense vectors."""
