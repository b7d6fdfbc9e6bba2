"""pyff: a durable execution engine that lives inside PostgreSQL."""

__version__ = "0.1.0"
