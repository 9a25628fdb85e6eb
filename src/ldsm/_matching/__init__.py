"""Matching: finds the candidate labels of a row, its shortlist."""
