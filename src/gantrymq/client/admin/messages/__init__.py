"""Stored messages: finding them, their traces and their history, and those that wait."""
