"""Groups of options that several commands share, each collected into one object."""
