"""HTTP: connection limits, request checks, bodies and answers."""
