"""The fitted model: how it is made, what it predicts, why, and how it is kept in a file."""
