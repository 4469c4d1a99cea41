"""The guards of the program, each with the test that fails when it is taken out.

`python -m tests.guards` takes them out, one after the other, and tells which went unnoticed.
"""

from tests.guards import faults, inputs, leaving, markup, recordings, server, weights

GUARDS = tuple(
    guard
    for table in (leaving, weights, faults, markup, inputs, recordings, server)
    for guard in table.GUARDS
)
