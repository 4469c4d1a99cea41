"""The reference's corpus: CNN/DailyMail test articles from the Hugging Face Hub.

The library `datasets` is not among the requirements, since nothing else needs it.
"""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Iterator

from sidecar_core.errors import SidecarError, first_line

DATASET = ("abisee/cnn_dailymail", "3.0.0")
TEST_ARTICLES = 11_490


def cnn_dailymail(count: int) -> Iterator[dict[str, str]]:
    """The first `count` articles of the test split, as {"id", "text"}.

    Raises SidecarError where the library is missing or the Hub cannot be reached.
    """
    if not 1 <= count <= TEST_ARTICLES:
        raise SidecarError(f"The count is {count}; it must be from 1 to {TEST_ARTICLES:,}.")
    try:
        datasets = importlib.import_module("datasets")
    except ImportError as error:
        raise SidecarError(
            "Fetching articles needs the library datasets; run `pip install datasets`, or give a "
            ".jsonl file of your own."
        ) from error
    try:
        rows = datasets.load_dataset(*DATASET, split="test", streaming=True)
        for row in itertools.islice(rows, count):
            yield {"id": str(row["id"]), "text": str(row["article"])}
    except Exception as error:  # the library passes on whatever its network stack raises
        why = first_line(error)
        raise SidecarError(
            f"{DATASET[0]} cannot be fetched from the Hugging Face Hub ({why}); check the network, "
            "or give a .jsonl file of your own."
        ) from error
