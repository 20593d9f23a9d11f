"""Staging: from rows as they are stored to frames that marts are made of. Frame in, frame out."""
