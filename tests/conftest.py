"""What holds for every test."""

from hypothesis import settings

# A shared machine pauses at will; how long an example took says nothing about the code.
settings.register_profile("spendgate", deadline=None)
settings.load_profile("spendgate")
