"""Features and labels in the form that the core reads, checked once."""
