"""The server around the page: options, logs, metrics, middleware, the process."""
