"""How tasks in other processes get their data and hand over results: through files."""
