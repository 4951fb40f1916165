"""Groups of commands. Each command has a separate file."""

from __future__ import annotations

import click

from jostle.cli.boundary import boundary
from jostle.cli.emulate import emulate
from jostle.cli.info import citations, cite, explain, list_, schema
from jostle.cli.link import convert, generate, show
from jostle.cli.renamed import RenamingGroup
from jostle.cli.scorecard import scorecard
from jostle.cli.sensitivity import sensitivity
from jostle.cli.setup import status
from jostle.cli.setup_kernel import kernel
from jostle.cli.setup_module import module
from jostle.cli.setup_quic import quic
from jostle.cli.shell_completion import completion
from jostle.cli.study_coverage import coverage, list_studies
from jostle.cli.study_run import run_study
from jostle.cli.suite_run import list_suites, run_suite
from jostle.cli.tune import tune

search = RenamingGroup(
    "search",
    commands=[sensitivity, boundary, tune],
    short_help="Find sensitive keys, boundaries of claims, and best values.",
    help="Vary keys of a scenario to answer a question.\n\n"
    "Example: jostle search boundary scenarios/sensitivity.toml --claim 'share of bbr <= 40 %'",
)
study = RenamingGroup(
    "study",
    commands=[list_studies, run_study, coverage],
    default="run",
    short_help="Reproduce published studies.",
    help="List, run and extend reproductions of published studies.\n\n"
    "Example: jostle study run geo-shared",
)
suite = RenamingGroup(
    "suite",
    commands=[list_suites, run_suite, scorecard],
    default="run",
    short_help="Test controllers against criteria, such as RFC 9743's.",
    help="List suites of criteria, and test controllers with them.\n\n"
    "Example: jostle suite run rfc9743 --controller bbr3 --quick",
)
link = RenamingGroup(
    "link",
    commands=[show, convert, generate, emulate],
    short_help="Show, convert, generate and emulate links.",
    help="Show, convert and generate recordings of links, and emulate links.\n\n"
    "A recording is in Mahimahi's format, a CSV table, JSON of `iperf3 --json` or `irtt client "
    "-o`, or output of ping. The content determines the format.\n\n"
    "Example: jostle link show recording.csv -o recording.png",
)
info = click.group(
    "info",
    cls=RenamingGroup,
    commands=[list_, explain, schema, citations],
    invoke_without_command=True,
    no_args_is_help=True,
    short_help="List and explain controllers, queues, measures, ….",
    help="List and explain controllers, queues, measures and other names.\n\n"
    "Example: jostle info explain bbr3",
)(cite)
setup = RenamingGroup(
    "setup",
    commands=[status, kernel, module, quic, completion],
    short_help="Build kernels, modules and QUIC programs, install completion.",
    help="Show what works on this machine, and build or install the rest.\n\n"
    "Example: jostle setup status",
)
