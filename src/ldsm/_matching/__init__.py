"""Matching: which labels come into question for a row, its shortlist."""
