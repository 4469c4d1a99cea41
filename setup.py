"""What pyproject.toml cannot say: all packages that are found, and `assets/` as one of them."""

from setuptools import find_packages, setup

setup(
    packages=[*find_packages(include=["sidecar_core*"]), "sidecar_core.assets"],
    package_dir={"sidecar_core.assets": "assets"},
)
