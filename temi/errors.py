"""The errors that the method library raises."""


class TemiError(Exception):
    """An input cannot be used; the message gives the reason."""


class InvalidConfig(TemiError):
    """A setting is outside its allowed range; ``field`` names the setting."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field
        self.message = message


class UnknownBackbone(TemiError):
    """There is no backbone with this name."""


class WeightsUnavailable(TemiError):
    """The weights of a known backbone are missing; the message tells how to get them."""
