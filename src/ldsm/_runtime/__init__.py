"""Where code runs: memory, cancelling work in threads, numbers as people read them."""
