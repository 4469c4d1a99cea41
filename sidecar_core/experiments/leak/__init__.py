"""The leak test: tags that only the document can have given."""
