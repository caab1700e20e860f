"""From a function to a command: options, the report, and exit codes.

0    done
1    an error, said in one line
3    not converged: the result is written, and the report says so
130  Ctrl-C
141  whoever read the output went away
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import json
import os
import sys
import time
import traceback
import warnings
from dataclasses import fields, is_dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any, get_type_hints

import typer

from otgraph.cli.options import RunOptions
from otgraph.cli.wording import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from otgraph.cli.report import Report


class ExitCode(IntEnum):
    """What the shell is told."""

    DONE = 0
    ERROR = 1
    NOT_CONVERGED = 3
    INTERRUPTED = 130  # 128 + SIGINT, as shells count
    BROKEN_PIPE = 141  # 128 + SIGPIPE


def command(function: Callable[..., Report]) -> Callable[..., None]:
    """The function as typer takes it: plain options in, an exit code out.

    A parameter whose type is a data class is replaced by the fields of that class.
    """
    groups, parameters = {}, []
    hints = get_type_hints(function, include_extras=True)
    for name, parameter in inspect.signature(function).parameters.items():
        if is_dataclass(hints[name]):
            groups[name] = hints[name]
            parameters += _parameters_of(hints[name])
        else:
            parameters.append(parameter.replace(annotation=hints[name]))

    @functools.wraps(function)
    def wrapper(**values: Any) -> None:
        arguments = {
            name: group(**{field.name: values.pop(field.name) for field in fields(group)})
            for name, group in groups.items()
        }
        names = [parameter.name for parameter in parameters]
        raise typer.Exit(int(_exit_code(function, {**values, **arguments}, names)))

    del wrapper.__wrapped__  # typer would look through to the original signature
    wrapper.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters]
    )
    wrapper.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return wrapper


def _parameters_of(group: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=field.default,
            annotation=hints[field.name],
        )
        for field in fields(group)
    ]


def _exit_code(
    function: Callable[..., Report], arguments: dict[str, Any], options: list[str]
) -> ExitCode:
    run: RunOptions = next(a for a in arguments.values() if isinstance(a, RunOptions))
    start = time.perf_counter()
    try:
        with _heard_warnings(options, silent=run.json or run.verbose is False) as heard:
            report = function(**arguments)
        not_converged = report.not_converged or any(kind for _, kind in heard)
        report.finish(time.perf_counter() - start, [text for text, _ in heard], not_converged)
        report.show(run)
        sys.stdout.flush()  # a reader that has gone away is noticed here, not at the very end
    except KeyboardInterrupt:
        print("otgraph: interrupted", file=sys.stderr)
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        forget_output()
        return ExitCode.BROKEN_PIPE
    except Exception as error:
        if run.debug:
            traceback.print_exc()
        complain(one_line(error, options), as_json=run.json)
        return ExitCode.ERROR
    return ExitCode.NOT_CONVERGED if not_converged else ExitCode.DONE


def complain(message: str, *, as_json: bool = False) -> None:
    """An error for people on standard error, and for machines on standard output."""
    print(f"otgraph: {message}", file=sys.stderr)
    if as_json:
        print(json.dumps({"error": message}))


def forget_output() -> None:
    """Point standard output nowhere, or Python would complain about it when it ends."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextlib.contextmanager
def _heard_warnings(options: list[str], *, silent: bool) -> Iterator[list[tuple[str, bool]]]:
    """Warnings meant for users, one line each on standard error, and whether a solver gave up.

    Deprecations and the like concern authors of programs; ``--debug`` does not bring them back
    either, ``python -W`` does.
    """
    heard: list[tuple[str, bool]] = []

    def hear(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        if not issubclass(category, UserWarning):
            return
        text = one_line(message, options)
        heard.append((text, category.__name__ == "ConvergenceWarning"))
        if not silent:
            print(f"otgraph: warning: {text}", file=sys.stderr)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = hear
        yield heard
