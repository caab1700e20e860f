"""The commands together."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from otgraph.cli.demo import demo
from otgraph.cli.denoise import denoise
from otgraph.cli.embed import embed
from otgraph.cli.explore import explore
from otgraph.cli.graph import graph
from otgraph.cli.info import info
from otgraph.cli.labels import labels
from otgraph.cli.path import path
from otgraph.cli.reproduce import reproduce
from otgraph.cli.running import ExitCode, command, complain

if TYPE_CHECKING:
    from collections.abc import Sequence

PROGRAM = "otgraph"

app = typer.Typer(
    name=PROGRAM,
    help="Adaptive, sparse neighborhood graphs by quadratically regularized optimal transport.",
    epilog="Exit codes: 0 done, 1 error, 3 not converged (the result is written), 130 Ctrl-C.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for function in (graph, path, embed, labels, denoise, explore, info, reproduce, demo):
    app.command(function.__name__)(command(function))


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


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code; nothing is raised but what ends Python."""
    try:
        code = app(arguments, prog_name=PROGRAM, standalone_mode=False)
    except (KeyboardInterrupt, typer.Abort):
        print(f"{PROGRAM}: interrupted", file=sys.stderr)
        return ExitCode.INTERRUPTED
    except Exception as error:
        # A command line that cannot be understood; commands themselves let nothing through.
        if not hasattr(error, "format_message"):
            raise
        text = error.format_message()
        if not text.strip():  # the help was shown instead
            return ExitCode.DONE
        sentence = " ".join(text.split()).removesuffix(".")
        program = getattr(getattr(error, "ctx", None), "command_path", PROGRAM)
        complain(f"{sentence}. Try `{program} --help`.")
        return ExitCode.ERROR
    return int(code or 0)
