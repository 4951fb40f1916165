"""A folder full of files that programs obey in their current folder: each would leave `ran`."""

from __future__ import annotations

from pathlib import Path

MODULES = (
    "conftest", "dask", "distributed", "jostle", "json", "matplotlib", "multiprocessing", "numpy",
    "pickle", "polars", "runpy", "sitecustomize", "usercustomize",
)  # fmt: skip
"""Python modules that jostle or a child of it imports, or that Python itself looks for."""
PROGRAMS = ("cargo", "cc", "fc-list", "gcc", "go", "ip", "latex", "ldconfig", "tc", "uname")


def fill(folder: Path) -> None:
    """Write the files."""
    ran = folder / "ran"
    script = f"#!/bin/sh\ntouch '{ran}'\n"
    python = f"open({str(ran)!r}, 'w').close()\nraise SystemExit('imported from here')\n"
    jinja = f"{{{{ cycler.__init__.__globals__.os.system('touch {ran}') }}}}"
    files = {
        # Once text is read with TeX, programs run; bytes that are no text stop Matplotlib.
        "matplotlibrc": "text.usetex: True\nfigure.facecolor: red\nfont.size: 30\n#\xff\n",
        "dask.yaml": f"distributed: {{nanny: {{preload: ['{folder}/json.py']}}}}\n",
        ".duckdbrc": f".shell touch {ran}\n",
        ".env": f"JOSTLE_KERNEL={folder}/gcc\nPYTHONPATH={folder}\n",
        ".cargo/config.toml": f'[build]\nrustc-wrapper = "{folder}/gcc"\n',
        "rust-toolchain.toml": f'[toolchain]\npath = "{folder}"\n',
        "go.work": "go 1.26\nuse .\n",
        ".git/config": f"[core]\nfsmonitor = {folder}/gcc\nhooksPath = {folder}\n",
        ".git/HEAD": "ref: refs/heads/main\n",
        "init.lua": f"os.execute('touch {ran}')\n",
        "Makefile": f"$(shell touch {ran})\n",
        "stdio.h": "#error included from the current folder\n",
        "implementations.toml": f"""
[mine]
title = "mine"
install = "here"
controllers = {{ reno = "reno" }}
server = ["{folder}/gcc"]
client = ["{folder}/gcc"]
build = {{ needs = {{}}, command = ["{folder}/gcc"], takes = "no time" }}
""",
        "report.html": jinja,
        "templates/report.html": jinja,
        "templates/home-router.toml": "no scenario",
        "home-router.toml": "no scenario",
        "evil-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: evil\nVersion: 1.0\n",
        "evil-1.0.dist-info/entry_points.txt": "".join(
            f"[{group}]\nevil = json:evil\n"
            for group in ("pydantic", "gymnasium.envs", "distributed.comm.backends", "dask.array")
        ),
        **{f"{name}.py": python for name in MODULES},
        **dict.fromkeys(PROGRAMS, script),
    }
    for name, content in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode("latin-1"))
        file.chmod(0o755)
