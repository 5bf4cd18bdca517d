"""Faults in an adapter's code, by the place in its own file: ``my_agent.py:16 in frame: NameError: name 'PER_100' ...``."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from traceback import walk_tb

from guieval.errors import AdapterFault, GuievalError
from guieval.models.adapter import ABCModel


@contextmanager
def named_faults(model: ABCModel) -> Iterator[None]:
    """Turns a fault into an :class:`AdapterFault`, one sentence with its place."""
    try:
        yield
    except Exception as error:  # an adapter may be anyone's code
        if (fault := fault_of(model, error)) is None:
            raise
        raise AdapterFault(f"the adapter is at fault: {fault}") from error


def fault_of(model: ABCModel, error: BaseException | None, method: str | None = None) -> str | None:
    """``FILE:LINE in FUNCTION: TYPE: message``, where the adapter's own code was when ``error`` was raised.

    If none of it was running, the place is the beginning of ``method``, which returned what cannot be used; ``None`` without
    one. So it is for an error that the adapter raised on purpose: a refusal, not a fault.
    """
    if error is None or isinstance(error, GuievalError):
        return None
    families = type(model).__mro__[: type(model).__mro__.index(ABCModel)]
    methods = [inspect.unwrap(each) for family in families for each in vars(family).values() if inspect.isfunction(each)]
    own = {each.__code__.co_filename for each in methods}
    places = [(frame.f_code, line) for frame, line in walk_tb(error.__traceback__) if frame.f_code.co_filename in own]
    if not places and method is not None:
        code = inspect.unwrap(getattr(model, method)).__code__
        places = [(code, code.co_firstlineno)]
    if not places:
        return None
    code, line = places[-1]
    return f"{Path(code.co_filename).name}:{line} in {code.co_name}: {type(error).__name__}: {error}"
