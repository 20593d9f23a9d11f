"""The end-to-end story: a shop, a crash in the middle, and the proof that nothing was lost."""
