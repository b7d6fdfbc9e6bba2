"""An error for people: what went wrong, and what to do about it."""

from typing import Any


class Failure(Exception):  # noqa: N818
    """The CLI prints it as one line plus the hint, without a traceback, and exits with `exit_code`."""

    exit_code = 1

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n  hint: {self.hint}" if self.hint else self.message

    def __reduce__(self) -> tuple[Any, ...]:
        """For pickle and copy, without calling __init__: the arguments of a subclass are not those of Exception."""
        return _restored, (type(self), self.args), self.__dict__


def _restored(cls: type[Failure], args: tuple[object, ...]) -> Failure:
    return cls.__new__(cls, *args)


class CursorMoved(Failure):
    """Another process has moved this stored cursor."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"the cursor {name!r} was moved by another process",
            hint="Stop one of the two readers with this name, or load the cursor again.",
        )


__all__ = ["CursorMoved", "Failure"]
