"""Install a wheel into an empty environment and run the demonstration there: `make wheel`.

A second environment gets it as users do, by `pip install FILE`. Nothing of the repository but the
scenario and the versions of dependencies is used, from another folder, so that what the wheel lacks
is missed. The pip of this Python installs into the environment: it takes the hashes of dependencies
from constraints.txt, which older ones cannot.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
SCENARIO = ROOT / "scenarios" / "geo-shared.toml"
CONSTRAINTS = ROOT / "constraints.txt"


def run(*command: str | Path, cwd: Path, **variables: str) -> str:
    """Run a command away from the repository; returns what it prints."""
    environment = {key: it for key, it in os.environ.items() if not key.startswith("PYTHON")}
    environment |= {"JOSTLE_STORE": str(cwd / "store"), **variables}
    done = subprocess.run(command, cwd=cwd, env=environment, stdout=subprocess.PIPE, check=True)
    return done.stdout.decode()


def _install_alone(wheel: Path, folder: Path) -> None:
    """Install the file alone, with the newest dependencies, and ask for the version."""
    venv.create(folder / "alone")
    scripts = Path(sysconfig.get_path("scripts", "venv", {"base": str(folder / "alone")}))
    python = shutil.which("python", path=scripts)
    assert python is not None, scripts
    pip = (sys.executable, "-m", "pip", "--python", python)
    unlocked = {"PIP_CONSTRAINT": "", "PIP_REQUIRE_HASHES": ""}
    run(*pip, "install", "--quiet", wheel.resolve(), cwd=folder, **unlocked)
    assert run(scripts / "jostle", "--version", cwd=folder).startswith("jostle ")


def main(wheel: Path) -> None:
    """Install, look at the command, run the scenario, and check what it says."""
    with tempfile.TemporaryDirectory(prefix="wheel-") as name:
        folder = Path(name)
        venv.create(folder / "venv")
        scripts = sysconfig.get_path("scripts", "venv", {"base": str(folder / "venv")})
        python = shutil.which("python", path=scripts)
        jostle = Path(scripts) / "jostle"
        assert python is not None, scripts
        digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
        requirements = folder / "requirements.txt"
        requirements.write_text(f"{wheel.resolve().as_uri()} --hash=sha256:{digest}\n")
        run(
            *(sys.executable, "-m", "pip", "--python", python, "install", "--quiet"),
            *("--require-hashes", "--constraint", CONSTRAINTS, "--requirement", requirements),
            cwd=folder,
        )
        _install_alone(wheel, folder)
        shutil.copy(SCENARIO, folder)
        where = run(python, "-c", "import jostle; print(jostle.__file__)", cwd=folder).strip()
        assert Path(where).resolve().is_relative_to(folder.resolve()), where
        told = run(jostle, "run", SCENARIO.name, "--json", "--repeats", "1", cwd=folder)
        conditions = json.loads(told)["conditions"]
        assert conditions, told[:1000]
        run(jostle, "run", SCENARIO.name, "--repeats", "1", "-o", "demo/", cwd=folder)
        pictures = list((folder / "demo").iterdir())
        assert pictures, "no figures"
        print(f"{wheel.name}: {len(conditions)} conditions, {len(pictures)} pictures")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
