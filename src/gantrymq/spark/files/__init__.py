"""Rows straight from the files of stores (`via=store`), without a broker."""
