"""The options of source and sink as users write them, read into typed values. Pure."""
