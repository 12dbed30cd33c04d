"""The form of the publish page."""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from . import channel_names

MAX_CHANNELS = 1000
"""Channels of one publication; as many as the service counts subscribers of at once."""

_HALF = re.compile("[\ud800-\udfff]")
"""Half of a surrogate pair: a quoted name can hold it, and no page can be sent with it."""

_STRING_OR_CONSTANT = re.compile(r'"(?:[^"\\]|\\.)*"|-?Infinity|NaN')


def text_area(rows: int, direction: str) -> forms.Textarea:
    """A field for names or JSON, whose text no browser completes or corrects.

    Args:
        direction: "ltr", "rtl" or "auto".
    """
    attributes = {
        "class": "vLargeTextField",
        "rows": rows,
        "cols": 60,
        "autocomplete": "off",
        "autocapitalize": "none",
        "spellcheck": "false",
        "dir": direction,
    }
    return forms.Textarea(attrs=attributes)


class ChannelsField(forms.CharField):
    """Names of channels, as `channel_names` reads them; its value is the list of them."""

    def clean(self, value: object) -> list[str]:
        """
        Raises:
            ValidationError: no name, too many of them, or one that cannot be stored.
        """
        names = channel_names.split(super().clean(value))
        check_number(len(names))
        if any("\0" in name for name in names):  # a quoted name can hold what no field can
            raise forms.ValidationError(_("A name holds a null character."), code="null")
        if any(_HALF.search(name) for name in names):
            raise forms.ValidationError(_("A name holds half of a character."), code="half")
        return names


class PublishForm(forms.Form):
    """Channels and data of one publication."""

    channel = ChannelsField(
        label=gettext_lazy("Channels"),
        help_text=gettext_lazy(
            "One or more, one a line or separated by spaces. A name with spaces stands in"
            " quotation marks."
        ),
        widget=text_area(2, "auto"),
    )
    # the class has another `data`, which stays: Django takes fields out of the class
    data = forms.CharField(  # type: ignore[assignment]
        label=gettext_lazy("Data (JSON)"),
        help_text=gettext_lazy('Any JSON value, for example {"text": "hi"}, "hi" or 42.'),
        strip=False,
        widget=text_area(10, "ltr"),
    )

    def clean_data(self) -> str:
        """The data as they were typed, which is how they are published."""
        text: str = self.cleaned_data["data"]
        check_json(text)
        return text


def check_number(channels: int) -> None:
    """Say that one publication goes into too many channels: each of them is an entry of the log.

    Raises:
        ValidationError
    """
    if channels > MAX_CHANNELS:
        text = ngettext(
            "These are %(count)d channels; at most %(limit)d can be published into at once.",
            "These are %(count)d channels; at most %(limit)d can be published into at once.",
            channels,
        )
        params = {"count": channels, "limit": MAX_CHANNELS}
        raise forms.ValidationError(text, code="many", params=params)


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
        raise forms.ValidationError(_("Nested too deeply."), code="invalid") from None
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
    text = _("Not valid JSON at line %(line)s, column %(column)s: %(message)s.")
    return forms.ValidationError(text, code="invalid", params=params)
