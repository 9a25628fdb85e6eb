"""The second stage: shortlists, the ranker, the blend that turns what is known into a score."""
