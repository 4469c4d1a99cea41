"""Serves the page, as `sidecar app` does; Hugging Face Spaces starts this file."""

from __future__ import annotations

import sys

from sidecar_core.page.serve import main

if __name__ == "__main__":
    sys.exit(main())
