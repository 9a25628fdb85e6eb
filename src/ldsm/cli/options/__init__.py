"""Options that several commands share, collected into one object each."""
