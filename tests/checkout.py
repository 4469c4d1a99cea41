"""The project's folder, and copies of it."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def project_files() -> list[str]:
    """The files that git has or would take, or all but hidden ones where there is no git."""
    git = shutil.which("git")
    found = [str(path.relative_to(ROOT)) for path in ROOT.rglob("*")]
    found = [name for name in found if not any(part[0] == "." for part in name.split("/"))]
    if git and (ROOT / ".git").exists():
        command = [git, "ls-files", "--cached", "--others", "--exclude-standard"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        if done.returncode == 0 and done.stdout:
            found = done.stdout.splitlines()
    return [name for name in found if (ROOT / name).is_file()]


def copy_project(folder: Path, wanted: Callable[[str], bool] = lambda name: True) -> None:
    """Copy the project's files, by their paths in it, to `folder`."""
    for name in project_files():
        if wanted(name):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
