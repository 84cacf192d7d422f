"""What is found while a policy is read: mistakes, which stop it, and warnings, which do not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from pydantic import ValidationError

from rebalancer.errors import Mistake
from rebalancer.parse.arguments import Arguments, joined_path, mistakes_of, shown
from rebalancer.parse.spelling import nearest_name

Model = TypeVar("Model", bound=Arguments)


class Findings:
    """Collects what is wrong and what is odd, so that one reading reports everything.

    mistakes, warnings: in the order of the document.
    """

    def __init__(self) -> None:
        self.mistakes: list[Mistake] = []
        self.warnings: list[str] = []

    def refuse(self, path: str, expected: str, nearest: str | None = None) -> None:
        """Note a mistake."""
        self.mistakes.append(Mistake(path, expected, nearest))

    def warn(self, path: str, sentence: str) -> None:
        """Note a warning about the value at a path."""
        self.warnings.append(f"{path}: {sentence}" if path else sentence)

    def refuse_unknown(self, document: Mapping[str, Any], known: Sequence[str], path: str) -> None:
        """Note each key that is not known here."""
        for key in document:
            if key not in known:
                self.refuse(joined_path(path, (str(key),)), "is not known here", nearest_name(str(key), known))

    def read(self, model: type[Model], given: Any, path: str, origins: Mapping[str, str] | None = None) -> Model | None:
        """Return the arguments, or None where they are wrong, with every mistake noted.

        origins: where an argument was written, for those that stand elsewhere in the document than their names say.
        """
        try:
            value = model.model_validate({} if given is None else given, by_alias=True, by_name=False)
        except ValidationError as error:
            self.mistakes.extend(mistakes_of(error, path, origins))
            return None
        for caution in cautions_of(value):
            self.warn(path, caution)
        return value

    def mapping(self, given: Any, path: str) -> dict[str, Any] | None:
        """Return a map, an absent one as empty; None, with the mistake noted, where it is something else."""
        if given is None:
            return {}
        if isinstance(given, Mapping):
            return dict(given)
        self.refuse(path, f"must be a map, not {shown(given)}")
        return None

    def sequence(self, given: Any, path: str) -> list[Any] | None:
        """Return a list, an absent one as empty; None, with the mistake noted, where it is something else."""
        if given is None:
            return []
        if isinstance(given, list | tuple):
            return list(given)
        self.refuse(path, f"must be a list, not {shown(given)}")
        return None

    def names(self, given: Any, path: str) -> list[tuple[int, str]]:
        """Return the strings of a list with their places; anything else in it is a mistake."""
        found = []
        for place, item in enumerate(self.sequence(given, path) or ()):
            if isinstance(item, str):
                found.append((place, item))
            else:
                self.refuse(f"{path}[{place}]", f"must be a string, not {shown(item)}")
        return found


def cautions_of(value: Arguments) -> Iterable[str]:
    """Yield the cautions of a group of arguments and of the groups inside it."""
    yield from value.cautions()
    for name in type(value).model_fields:
        inner = getattr(value, name)
        if isinstance(inner, Arguments):
            yield from cautions_of(inner)
