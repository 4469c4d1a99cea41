"""The process and its web server."""
