"""The command line program: the list of commands, and how each one runs.

Exit codes:

0    done
1    an error, described in one line
3    not converged: the result is written, and the report says so
130  Ctrl-C
141  the reader of the output went away
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import io
import json
import os
import sys
import time
import traceback
import warnings
from dataclasses import fields, is_dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Annotated

import typer

from otgraph.cli.clouds import transfer
from otgraph.cli.graphs import graph, info, path
from otgraph.cli.methods import cluster, denoise, embed, labels
from otgraph.cli.options import RunOptions
from otgraph.cli.pages import demo, explore, reproduce
from otgraph.cli.report import Report, one_line
from otgraph.cli.terminal import ERROR, WARNING, say

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from otgraph.typing import Keywords

PROGRAM = "otgraph"


class ExitCode(IntEnum):
    """Exit codes."""

    DONE = 0
    ERROR = 1
    NOT_CONVERGED = 3
    INTERRUPTED = 130  # 128 + SIGINT, as shells count
    BROKEN_PIPE = 141  # 128 + SIGPIPE


app = typer.Typer(
    name=PROGRAM,
    help="Adaptive, sparse neighborhood graphs by quadratically regularized optimal transport.",
    epilog="Exit codes: 0 done, 1 error, 3 not converged (the result is written), 130 Ctrl-C.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code."""
    _print_any_text()
    code = _run(arguments)
    try:
        if not sys.stdout.closed:  # pandas closes it when it cannot write
            sys.stdout.flush()  # a full disk or a closed pipe shows here, not when Python exits
    except OSError as error:
        return _lost_output(error)
    return code


def _run(arguments: Sequence[str] | None) -> int:
    try:
        code = app(arguments, prog_name=PROGRAM, standalone_mode=False)
    except (KeyboardInterrupt, typer.Abort):
        print(f"{PROGRAM}: interrupted", file=sys.stderr)
        return ExitCode.INTERRUPTED
    except OSError as error:  # of printing help; commands handle their own errors
        return _lost_output(error)
    except Exception as error:
        # Errors in the command line itself; commands handle their own errors.
        if not hasattr(error, "format_message"):
            raise
        text = error.format_message()
        if not text.strip():  # the help was shown instead
            return ExitCode.DONE
        sentence = " ".join(text.split()).removesuffix(".")
        program = getattr(getattr(error, "ctx", None), "command_path", PROGRAM)
        _complain(f"{sentence}. Try `{program} --help`.")
        return ExitCode.ERROR
    return int(code or 0)


def _version(wanted: bool) -> None:
    if wanted:
        import otgraph

        print(f"{PROGRAM} {otgraph.__version__}")
        raise typer.Exit


def _main(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Options of the program itself."""


app.callback(help=app.info.help, epilog=app.info.epilog)(_main)


def _command(function: Callable[..., None]) -> Callable[..., None]:
    """A function for typer: takes plain options and returns an exit code.

    A parameter whose type is a data class becomes one option for each field of that class. The
    report is made from the options of the run.
    """
    parameters: list[inspect.Parameter] = []
    groups: Keywords = {}
    for parameter in inspect.signature(function, eval_str=True).parameters.values():
        group = RunOptions if parameter.annotation is Report else parameter.annotation
        if is_dataclass(group):
            groups[parameter.name] = group
            parameters += inspect.signature(group, eval_str=True).parameters.values()
        else:
            parameters.append(parameter)
    names = [parameter.name for parameter in parameters]

    @functools.wraps(function)
    def call(**values: object) -> None:
        for name, group in groups.items():
            values[name] = group(**{field.name: values.pop(field.name) for field in fields(group)})
        values["report"] = Report(function.__name__, values["report"])  # type: ignore[arg-type]
        raise typer.Exit(int(_exit_code(function, values, names)))

    del call.__wrapped__  # typer would look through to the original signature
    call.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters]
    )
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return call


for function in (
    graph, path, embed, cluster, labels, transfer, denoise, explore, info, reproduce, demo,
):  # fmt: skip
    app.command(function.__name__)(_command(function))


def _exit_code(function: Callable[..., None], arguments: Keywords, options: list[str]) -> ExitCode:
    report: Report = arguments["report"]
    run = report.run
    start = time.perf_counter()
    try:
        with _heard_warnings(options, silent=run.json or run.verbose is False) as heard:
            function(**arguments)
        not_converged = report.not_converged or any(gave_up for _, gave_up in heard)
        report.finish(time.perf_counter() - start, [text for text, _ in heard], not_converged)
    except KeyboardInterrupt:
        print(f"{PROGRAM}: interrupted", file=sys.stderr)
        return ExitCode.INTERRUPTED
    except BrokenPipeError as error:
        return _lost_output(error)
    except Exception as error:
        if run.debug:
            traceback.print_exc()
        _complain(one_line(error, options), as_json=run.json)
        return ExitCode.ERROR
    try:
        report.show()
        sys.stdout.flush()
    except OSError as error:
        return _lost_output(error)
    return ExitCode.NOT_CONVERGED if not_converged else ExitCode.DONE


def _complain(message: str, *, as_json: bool = False) -> None:
    """Print an error to standard error, and as JSON to standard output if asked."""
    with contextlib.suppress(OSError):  # a full disk; the exit code still tells
        say(f"{PROGRAM}: {message}", style=ERROR)
    if as_json:
        with contextlib.suppress(OSError):
            print(json.dumps({"error": message}))


def _print_any_text() -> None:
    """Print file names that are not valid text with escapes, instead of raising an error."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _lost_output(error: OSError) -> ExitCode:
    """Standard output cannot be written: its reader went away, or the disk is full."""
    # Redirected to nowhere; otherwise Python reports the error again at exit.
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if isinstance(error, BrokenPipeError):
        return ExitCode.BROKEN_PIPE
    _complain(f"standard output: {one_line(error)}")
    return ExitCode.ERROR


@contextlib.contextmanager
def _heard_warnings(options: list[str], *, silent: bool) -> Iterator[list[tuple[str, bool]]]:
    """Warnings for users, one line each on standard error, and whether a solver gave up.

    Deprecation warnings are for developers; ``python -W`` shows them.
    """
    heard: list[tuple[str, bool]] = []

    def hear(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
        from otgraph.exceptions import ConvergenceWarning

        # Some deprecations, such as pyparsing's, are user warnings as well.
        if not issubclass(category, UserWarning) or issubclass(category, DeprecationWarning):
            return
        text = one_line(message, options)
        heard.append((text, issubclass(category, ConvergenceWarning)))
        if not silent:
            say(f"{PROGRAM}: warning: {text}", style=WARNING)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = hear
        yield heard
