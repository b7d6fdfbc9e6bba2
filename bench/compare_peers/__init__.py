"""pyff and its peers, side by side on one server."""
