"""The endpoints of the service, by the interface that they belong to."""
