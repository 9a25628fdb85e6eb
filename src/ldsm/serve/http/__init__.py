"""What HTTP brings with it: limits of connections, checks of requests, bodies and answers."""
