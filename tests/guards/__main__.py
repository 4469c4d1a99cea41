"""`python -m tests.guards [WORD ...]`: take the guards out, and see whether a test notices.

Works on a copy of the project's tracked files, one guard after the other: its piece of code is
replaced, its test must fail, the file is put back. At last all these tests must pass as the code
stands. With words, only the guards whose names hold one of them. Exit code 1 when a removal went
unnoticed. All of them take about half an hour on two cores.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.guards import GUARDS
from tests.guards.guard import Guard

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 300
"""Longest that one test may take; a test that hangs proves nothing."""

FAILED = 1
"""pytest's exit code where a test failed; other codes tell of a test that could not be run."""


def copy_of_the_project(folder: Path) -> None:
    """The tracked files, as they are now."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)


def run_tests(project: Path, tests: Sequence[str], seconds: float) -> tuple[int | None, str]:
    """pytest's exit code, None where time was up, and its output. Ends what the tests left."""
    # No byte code: it is told by a file's time and size, which a replacement may leave alike.
    own = {"PYTHONPATH": str(project), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--tb=short"]
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            [*command, *(f"tests/{test}" for test in tests)],
            cwd=project,
            env=os.environ | own,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        output.seek(0)
        return code, output.read().decode("utf-8", "replace")


def is_noticed(guard: Guard, project: Path) -> bool:
    """Take the guard out and run its test; says on standard output what came of it."""
    file = project / guard.path
    whole = file.read_text(encoding="utf-8")
    file.write_text(guard.out_of(whole), encoding="utf-8")
    try:
        code, output = run_tests(project, [guard.test], SECONDS)
    finally:
        file.write_text(whole, encoding="utf-8")
    errors = re.findall(r"^E +(.+)", output, flags=re.MULTILINE)
    if code == FAILED:
        print(f"held       {guard.against}  ({errors[0][:80] if errors else 'no error shown'})")
    else:
        what = "time was up" if code is None else f"exit code {code}"
        print(f"UNNOTICED  {guard.against}: {what} of {guard.test}")
    sys.stdout.flush()
    return code == FAILED


def main(words: Sequence[str]) -> int:
    chosen = [g for g in GUARDS if not words or any(word in g.against for word in words)]
    if not chosen:
        print(f"No guard's name holds {' or '.join(words)}.")
        return 2
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder)
        copy_of_the_project(project)
        unnoticed = [guard.against for guard in chosen if not is_noticed(guard, project)]
        tests = list(dict.fromkeys(guard.test for guard in chosen))
        code, output = run_tests(project, tests, SECONDS * len(tests))
    if code:
        print(f"As the code stands, these tests do not pass:\n{output}")
    print(f"{len(chosen) - len(unnoticed)} of {len(chosen)} guards are held by a test.")
    return 1 if unnoticed or code != 0 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
