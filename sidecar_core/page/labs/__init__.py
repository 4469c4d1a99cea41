"""The two labs: an experiment on the article at hand, or on a file of articles."""
