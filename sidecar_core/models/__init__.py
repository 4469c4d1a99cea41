"""Model pairs: where weights come from, how they are kept, and networks ready to run."""
