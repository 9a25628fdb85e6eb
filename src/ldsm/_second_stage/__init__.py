"""The second stage: shortlists, the ranker, and the blend that gives the final score."""
