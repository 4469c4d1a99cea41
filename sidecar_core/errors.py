"""The one error class for what a user reads.

Raised wherever input, settings, weights or the machine make a run impossible. The message is one
line that says what was wrong, what the limit is, and what to do. At the edge it becomes `gr.Error`
on the page and exit code 2 on the command line. In between it is caught where the work goes on
without what failed (an article that is skipped, a draft that is lost), or where the line is written
down on its way (a run's RunFailed).
"""


def quoted(value: object) -> str:
    """What somebody sent, short enough for a line, whatever it is."""
    try:
        whole = repr(value)
    except (ValueError, RecursionError):  # thousands of digits, or of lists in lists
        whole = f"a huge {type(value).__name__}"
    return whole if len(whole) <= 60 else whole[:59] + "…"


def first_line(error: BaseException) -> str:
    """What a library's error says, short enough for one of our lines; its class if it is silent."""
    return str(error).strip().partition("\n")[0][:160] or type(error).__name__


class SidecarError(Exception):
    """Something a user can understand and act on; `str(error)` is the line to show."""


class ModelFailed(SidecarError):
    """A model's forward pass failed, or gave numbers that are not finite."""


class OutOfMemory(SidecarError):
    """Memory ran out; what was kept for later runs is to be let go."""


class Cancelled(Exception):
    """Raised inside the engine when a Stop was requested; never shown as an error."""
