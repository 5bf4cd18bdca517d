"""guieval's own episode format: reading, indexing, writing, and preparing it from a published release."""
