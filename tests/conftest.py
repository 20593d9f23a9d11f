"""What holds for every test."""

from hypothesis import settings

# Hypothesis may not judge how long an example takes: two cores are shared by many processes.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")
