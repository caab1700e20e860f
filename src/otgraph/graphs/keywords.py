"""How keywords are described, and how a function shows those that it only passes on.

Nothing heavy is loaded here: the command line makes its options from these descriptions, and its
help is to appear at once. Checks load what they need when they run.
"""

from __future__ import annotations

import difflib
import inspect
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_type_hints

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Self

    from otgraph.typing import Keywords

    Check = Callable[[object, str], object]

Function = TypeVar("Function", bound="Callable[..., object]")

# The entry of a docstring that stands for the keywords behind `**options`.
MARKER = "**options"


def option(default: object, meaning: str, check: Check | None = None, *, unset: str = "") -> Any:
    """A keyword: its default, its meaning in one line, and a function that checks it.

    ``unset`` says what a default of None stands for.
    """
    return field(default=default, metadata={"meaning": meaning, "check": check, "unset": unset})


def checked(kind: str, **limits: object) -> Check:
    """A check by ``_validation.check_<kind>``, which is loaded when it runs."""

    def check(value: object, name: str) -> object:
        from otgraph import _validation

        return getattr(_validation, f"check_{kind}")(value, name, **limits)

    return check


positive, power_of_distance, seed = checked("positive"), checked("power"), checked("seed")
share = checked("share")


def count(minimum: int = 1) -> Check:
    """A check that a value is an integer of at least ``minimum``."""
    return checked("count", minimum=minimum)


def one_of(choices: object) -> Check:
    """A check that a value is one of the choices."""
    return checked("choice", choices=get_args(choices))


def optional(check: Check) -> Check:
    """A check that also accepts None."""
    return lambda value, name: None if value is None else check(value, name)


def or_word(check: Check, word: str) -> Check:
    """A check that also accepts a word."""

    def checked_or_word(value: object, name: str) -> object:
        if not isinstance(value, str):
            return check(value, name)
        if value != word:
            from otgraph.exceptions import invalid

            raise invalid(name, f"must be a positive number or {word!r}, got {value!r}.")
        return word

    return checked_or_word


def flag(value: object, name: str) -> bool:
    """Any value as true or false."""
    return bool(value)


def known_metric(value: object, name: str) -> object:
    """A metric that the cost layer knows."""
    from otgraph.costs.metrics import check_metric, is_precomputed

    if not is_precomputed(value):
        check_metric(value)
    return value


@dataclass(frozen=True, kw_only=True)
class Options:
    """Keywords of a construction, checked by the constructor."""

    def __post_init__(self) -> None:
        """Replace every field by its checked value."""
        for each in fields(self):
            check, value = each.metadata["check"], getattr(self, each.name)
            if check is not None and value is not each.default:
                object.__setattr__(self, each.name, check(value, each.name))

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """The keywords in order."""
        return tuple(each.name for each in fields(cls))

    @classmethod
    def of(cls, function: Callable[..., object], given: Mapping[str, Any]) -> Self:
        """The options from what came as ``**options`` of a function that `shows` them."""
        _, *known = inspect.signature(function).parameters  # without the points
        refuse_unknown(given, known, function.__name__)
        return cls(**given)

    def keywords(self) -> Keywords:
        """The checked keywords, to be passed on."""
        return {name: getattr(self, name) for name in self.names()}

    def record(self) -> Keywords:
        """The keywords as plain values, for the parameters of a graph."""
        from otgraph.costs.metrics import metric_name

        values = self.keywords()
        if "metric" in values:
            values["metric"] = metric_name(values["metric"])
        return values


def refuse_unknown(given: Iterable[str], known: Iterable[str], of: str, hint: str = "") -> None:
    """Raise an error for the first keyword that is not known, with those that look like it."""
    known = list(known)
    for name in given:
        if name not in known:
            from otgraph._text import listed
            from otgraph.exceptions import invalid

            alike = difflib.get_close_matches(name, known)
            guess = f" Did you mean {' or '.join(f'`{each}`' for each in alike)}?" if alike else ""
            takes = listed(map(repr, known), len(known))
            msg = f"is not a keyword of {of}; it takes {takes}.{guess}{hint}"
            raise invalid(name, msg, TypeError)


@dataclass(frozen=True)
class Keyword:
    """A keyword of one or of several constructions."""

    name: str
    annotation: object
    defaults: dict[str, object]  # by construction
    meanings: dict[str, str]  # by construction
    unset: str  # what a default of None stands for; may be empty

    @property
    def default(self) -> object:
        """The default that all constructions share; None if they differ."""
        first, *others = self.defaults.values()
        return first if all(other == first for other in others) else None

    def meaning(self, unmarked: str | None = None) -> str:
        """What it means, with the names of the constructions but for the ``unmarked`` one.

        Nothing is said about other constructions for which it means the same.
        """
        groups: dict[str, list[str]] = {}
        for construction, meaning in self.meanings.items():
            groups.setdefault(meaning.removesuffix("."), []).append(construction)
        parts = [
            text if unmarked in names else f"{', '.join(names)}: {text[:1].lower()}{text[1:]}"
            for text, names in groups.items()
        ]
        return f"{'; '.join(parts)}."

    def text(self, unmarked: str | None = None) -> str:
        """The meaning, and what None stands for."""
        none = f" None: {self.unset}." if self.unset else ""
        return self.meaning(unmarked) + none


def merged(classes: Mapping[str, type[Options]]) -> dict[str, Keyword]:
    """The keywords of several constructions, those of the first one first."""
    found: dict[str, Keyword] = {}
    for construction, options in classes.items():
        hints = get_type_hints(options)
        for each in fields(options):
            name, about = each.name, each.metadata
            if name not in found:
                found[name] = Keyword(name, hints[name], {}, {}, about["unset"])
            found[name].defaults[construction] = each.default
            found[name].meanings[construction] = about["meaning"]
    return found


def shows(classes: Mapping[str, type[Options]]) -> Callable[[Function], Function]:
    """Show the keywords behind the ``**options`` of a function.

    `help`, editors at run time and the reference read the signature and the docstring. Both get
    every keyword; in the docstring they replace the entry ``**options``. Type checkers read the
    annotation ``Unpack[...]`` in the source.
    """

    def decorate(function: Function) -> Function:
        signature = inspect.signature(function)
        *own, _ = signature.parameters.values()
        hidden = [
            each for name, each in merged(classes).items() if name not in signature.parameters
        ]
        added = [
            inspect.Parameter(
                each.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=each.default,
                annotation=each.annotation,
            )
            for each in hidden
        ]
        shown = signature.replace(parameters=[*own, *added])
        function.__signature__ = shown  # type: ignore[attr-defined]
        if function.__doc__:  # there is none under `python -OO`
            unmarked = next(iter(classes))
            entries = [f"{each.name}\n    {each.text(unmarked)}" for each in hidden]
            text = inspect.cleandoc(function.__doc__)
            function.__doc__ = text.replace(f"\n{MARKER}\n", f"\n{chr(10).join(entries)}\n")
        return function

    return decorate
