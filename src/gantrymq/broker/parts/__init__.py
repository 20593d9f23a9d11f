"""The broker's parts lists: the only place that builds handlers from features."""
