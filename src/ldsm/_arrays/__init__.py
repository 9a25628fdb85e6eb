"""What comes in: features and labels in the one form that the core reads, checked once."""
