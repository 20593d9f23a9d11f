"""A busy machine makes any example slow now and then; that is no failure."""

from hypothesis import settings

settings.register_profile("patient", deadline=None)
settings.register_profile("thorough", deadline=None, max_examples=5000)
settings.load_profile("patient")
