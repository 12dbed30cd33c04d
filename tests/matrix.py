"""Unit tests with each Python of this machine and each Django for it: `make matrix`.

    python -m tests.matrix

A public forge has all combinations (.github/workflows/tests.yml). Here those are run whose
interpreter is installed, and the others are named.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
DJANGOS = {"5.2": PYTHONS, "6.0": PYTHONS[1:], "6.1": PYTHONS[1:]}
"""Django → the Pythons that it supports."""

TESTS = ("tests/unit", "tests/testing")


def run(python: str, django: str) -> bool:
    """Install the project with a version of Django, and test it; returns whether that passed."""
    environment = ROOT / ".venv-matrix" / f"{python}-{django}"
    path = str(environment / "bin" / "python")
    subprocess.run([f"python{python}", "-m", "venv", "--clear", str(environment)], check=True)
    pip = [path, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, f"{ROOT}[dev]", f"django=={django}.*"], check=True)
    tests = [path, "-m", "pytest", "-q", "-n", "auto", "--dist", "loadfile", *TESTS]
    return subprocess.run(tests, cwd=ROOT, check=False).returncode == 0


def main() -> int:
    """Run what can be run; returns the exit status."""
    failed = []
    for django, pythons in DJANGOS.items():
        for python in pythons:
            name = f"Python {python}, Django {django}"
            if shutil.which(f"python{python}") is None:
                sys.stdout.write(f"{name}: not here, python{python} is not installed\n")
            else:
                passed = run(python, django)
                sys.stdout.write(f"{name}: {'passed' if passed else 'FAILED'}\n")
                failed += [] if passed else [name]
            sys.stdout.flush()
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
