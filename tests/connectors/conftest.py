"""The limits of tests of environments."""

from tests.online.conftest import distant_limits  # noqa: F401
