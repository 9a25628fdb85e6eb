"""Memory limits, cancelling work in threads, and numbers formatted for people."""
