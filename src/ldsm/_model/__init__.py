"""The fitted model: fitting, prediction, explanation and storage."""
