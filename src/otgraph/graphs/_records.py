"""Values of a file's header: JSON without numbers that are not finite, and certificates."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import fields
from typing import TYPE_CHECKING, Any, NoReturn

from otgraph.exceptions import FormatError
from otgraph.solvers.certificate import Certificate, Reason, Status

if TYPE_CHECKING:
    from collections.abc import Mapping

    # What JSON holds, as far as it is known.
    Record = Mapping[str, Any]


def certificate_text(certificate: Certificate) -> str:
    """A certificate as JSON, which :func:`certificates_of_text` reads."""
    return json.dumps(encoded(certificate.record()), allow_nan=False)


def certificates_of_text(text: str) -> tuple[list[Certificate], list[float] | None]:
    """The certificate of :func:`certificate_text`; those of the parts of a mean, with shares."""
    values = json.loads(text)
    if "parts" in values:
        return [certificate_of(each) for each in values["parts"]], values["shares"]
    return [certificate_of(values)], None


def certificate_of(encoded: Record) -> Certificate:
    values = decoded(encoded)
    enums = {"status": Status(values["status"]), "reason": Reason(values["reason"])}
    history = values.get("history", ())
    kinds = {field.name: field.type for field in fields(Certificate)}
    for name, value in values.items():
        if name == "evidence":  # set by the graph
            refuse("its certificate comes with evidence")
        if kinds[name] == "int" and (type(value) is not int or value < 0):
            refuse(f"{name} of its certificate is not a whole number >= 0")
        if kinds[name] == "float" and type(value) not in (int, float):
            refuse(f"{name} of its certificate is not a number")
    if not all(type(each) is tuple for each in (history, *history)) or not all(
        type(error) in (int, float) for errors in history for error in errors
    ):
        refuse("history of its certificate is not a table of numbers")
    if not 0.0 < float(values["eps"]) < math.inf:
        refuse(f"eps of its certificate must be positive and finite, got {values['eps']!r}")
    if not float(values.get("outlier_cost", math.inf)) > 0.0:
        refuse(f"outlier_cost of its certificate must be > 0, got {values['outlier_cost']!r}")
    return Certificate(**{**values, **enums})


def encoded(value: object) -> Any:
    """Numbers that are not finite as strings, because JSON has none; others are exact."""
    if isinstance(value, dict):
        return {key: encoded(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [encoded(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value)}
    return value


def decoded(values: Record) -> Record:
    return {key: _decoded_value(value) for key, value in values.items()}


def _decoded_value(value: object) -> Any:
    if isinstance(value, list):
        return tuple(_decoded_value(item) for item in value)
    if isinstance(value, int) and abs(value) > sys.maxsize:
        refuse("a number in its header is too large")  # it may have thousands of digits
    return float(value["float"]) if isinstance(value, dict) else value


def refuse(reason: str, cause: Exception | None = None) -> NoReturn:
    msg = f"This file is not a graph that can be read: {reason}."
    raise FormatError(msg) from cause
