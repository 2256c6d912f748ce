"""The one form of a measurement's JSON, and the identity of a measurement.

The form is computed from the JSON as it was written, and not from the types of this version of the
suite: a later version has more fields, and would give an old measurement another identity.
"""

from __future__ import annotations

import hashlib
import json

# JSON has one kind of number. Up to here a whole number is the same as integer and as float.
_WHOLE = 2**53


def canonical(text: bytes) -> bytes:
    """The JSON value of ``text`` in its one form, without a newline.

    Keys are sorted, there is no space, text is UTF-8 and not escaped. A number without a fraction
    is written without one (1 for 1.0); other numbers have the fewest digits that give the same
    float. So two texts of one value give the same bytes. Raises ValueError, also for NaN, infinity
    and half a surrogate pair, which are no JSON; RecursionError for a value that is nested deeply.
    """
    value = json.loads(text, parse_float=_number, parse_constant=_refuse)
    form = json.dumps(
        value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), sort_keys=True
    )
    return form.encode()


def record_id(form: bytes) -> str:
    """The identity of a measurement: the SHA-256 of its one form, 64 hexadecimal digits.

    Two measurements are one if they have the same cell, the same second of their start and the same
    figures. Machine, commit and environment are the place of a measurement, not a part of it.
    """
    return hashlib.sha256(form).hexdigest()


def _number(digits: str) -> int | float:
    number = float(digits)
    return int(number) if abs(number) < _WHOLE and number.is_integer() else number


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is not JSON")
