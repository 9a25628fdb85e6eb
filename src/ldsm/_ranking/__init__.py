"""The second stage: the ranker, centroids, and the blend that gives the final score."""
