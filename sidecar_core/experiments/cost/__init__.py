"""What a tagger costs."""
