"""Properties by which a message says that it was put into its topic again on purpose."""

from typing import Final

from gantrymq.protocol import properties

ORIGIN_MARKS: Final = {
    properties.RESENT_FROM: "resent",
    properties.SPREAD_FROM: "moved",
}
"""The property, and the word for it in reports."""
