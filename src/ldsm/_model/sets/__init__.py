"""Which labels of a row are predicted."""
