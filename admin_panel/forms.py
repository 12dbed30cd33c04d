"""The form of the publish page."""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

from django import forms

_STRING_OR_CONSTANT = re.compile(r'"(?:[^"\\]|\\.)*"|-?Infinity|NaN')


class PublishForm(forms.Form):
    """Channel and data of one publication."""

    channel = forms.CharField(
        help_text="For example news or chat:lobby; the part before the colon is the namespace.",
        widget=forms.TextInput(
            attrs={"class": "vTextField", "autocomplete": "off", "spellcheck": "false"}
        ),
    )
    data = forms.CharField(  # type: ignore[assignment]  # Django moves fields out of the class
        label="Data (JSON)",
        help_text='Any JSON value, for example {"text": "hi"}, "hi" or 42.',
        strip=False,
        widget=forms.Textarea(
            attrs={"class": "vLargeTextField", "rows": 10, "cols": 60, "spellcheck": "false"}
        ),
    )

    def clean_data(self) -> str:
        """The data as they were typed, which is how they are published."""
        text: str = self.cleaned_data["data"]
        check_json(text)
        return text


def check_json(text: str) -> None:
    """Say where a text stops being one JSON value.

    Raises:
        ValidationError
    """
    try:
        # numbers stay text: their value does not matter here, and may be too large to compute
        json.loads(text, parse_int=str, parse_float=str, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise _invalid(error.msg, error.lineno, error.colno) from None
    except RecursionError:
        raise forms.ValidationError("Nested too deeply.", code="invalid") from None
    except _ConstantError:
        position = next(
            match.start()
            for match in _STRING_OR_CONSTANT.finditer(text)
            if not match[0].startswith('"')
        )
        located = json.JSONDecodeError("NaN and Infinity are not JSON", text, position)
        raise _invalid(located.msg, located.lineno, located.colno) from None


class _ConstantError(Exception):
    """Python's reader accepts NaN and Infinity; JSON has no such values."""


def _refuse_constant(name: str) -> NoReturn:
    raise _ConstantError(name)


def _invalid(message: str, line: int, column: int) -> forms.ValidationError:
    params: dict[str, Any] = {"message": message, "line": line, "column": column}
    text = "Not valid JSON at line %(line)s, column %(column)s: %(message)s."
    return forms.ValidationError(text, code="invalid", params=params)
