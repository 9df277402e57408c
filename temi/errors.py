"""The errors that the method library raises on purpose."""


class TemiError(Exception):
    """Something the caller gave cannot be used; the message says why."""


class InvalidConfig(TemiError):
    """A setting is outside its allowed range; ``field`` names the setting."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field
        self.message = message


class UnknownBackbone(TemiError):
    """No backbone goes by this name."""


class WeightsUnavailable(TemiError):
    """The backbone is known but its weights are not here; the message says how to get them."""
