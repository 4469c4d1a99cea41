"""Errors that a user reads.

`SidecarError` is raised when bad input, missing weights or the machine make a run impossible. Its
message is one line: what was wrong, what the limit is, what to do. The page shows it as `gr.Error`;
the command line prints it and exits with code 2. Subclasses exist only where a caller must tell
errors apart. Code in between catches a SidecarError only if it can continue without the part that
failed: it skips an article, drops the draft, or records the line in a run's RunFailed event.
"""


def quoted(value: object) -> str:
    """`value` as it was given, shortened to at most 60 characters."""
    try:
        whole = repr(value)
    except (ValueError, RecursionError):  # thousands of digits, or of lists in lists
        whole = f"a huge {type(value).__name__}"
    return whole if len(whole) <= 60 else whole[:59] + "…"


def first_line(error: BaseException) -> str:
    """The first line of a library's error message, shortened; the class name if it is empty."""
    return str(error).strip().partition("\n")[0][:160] or type(error).__name__


class SidecarError(Exception):
    """An error that a user can understand and act on; `str(error)` is the line to show.

    `title` names the kind of error. It heads the message on the page, and API clients receive it
    beside the message, so that they need not match its words.
    """

    title = "Error"


class BadInput(SidecarError):
    """The article, a setting, a link or a file cannot be used as given."""

    title = "Invalid input"


class Busy(SidecarError):
    """The queue is full, or this visitor already has a run in progress or queued."""

    title = "Busy"


class ModelFailed(SidecarError):
    """A model's forward pass failed, or returned numbers that are not finite."""


class OutOfMemory(SidecarError):
    """Memory ran out; whoever holds caches for later runs should free them."""


class Cancelled(Exception):
    """Raised inside the engine after a Stop was requested; never shown as an error."""
