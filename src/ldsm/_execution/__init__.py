"""Executors, threads and memory limits."""
