"""The form of the publish page."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NoReturn

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from .. import channel_names
from ..service import MAX_EPOCH_LENGTH, UINT64_MAX

EXTRAS = ("tags", "once", "version", "version_epoch", "skip_history")
"""Fields that are rarely needed, in their order on the page."""

MAX_CHANNELS = 1000
"""Channels of one publication: as many as the service can count the subscribers of at once."""

_SURROGATE = re.compile("[\ud800-\udfff]")
"""A lone surrogate. A quoted name may hold one, but no page can be sent with it."""

_STRING_OR_CONSTANT = re.compile(r'"(?:[^"\\]|\\.)*"|-?Infinity|NaN')


_AS_TYPED = {"autocomplete": "off", "autocapitalize": "none", "spellcheck": "false"}
"""Browsers neither complete nor correct the text of a field with these attributes."""


def text_area(rows: int, direction: str) -> forms.Textarea:
    """Return a field for names or JSON, whose text browsers neither complete nor correct.

    Args:
        rows: its height in lines.
        direction: "ltr", "rtl" or "auto".
    """
    size = {"class": "vLargeTextField", "rows": rows, "cols": 60, "dir": direction}
    return forms.Textarea(attrs=size | _AS_TYPED)


def text_line(mode: str = "text") -> forms.TextInput:
    """Return a field for one line. `mode`: of the keyboard of a phone."""
    line = {"class": "vTextField", "inputmode": mode, "dir": "auto"}
    return forms.TextInput(attrs=line | _AS_TYPED)


class ChannelsField(forms.CharField):
    """Channel names in one text, see `channel_names`; its value is their list."""

    def clean(self, value: object) -> list[str]:
        """
        Raises:
            ValidationError: there is no name, there are too many, or one cannot be stored.
        """
        names = channel_names.split(super().clean(value))
        check_number(len(names))
        if any("\0" in name for name in names):  # only a quoted name can hold one
            raise forms.ValidationError(_("A name contains a null character."), code="null")
        if any(_SURROGATE.search(name) for name in names):
            raise forms.ValidationError(_("A name contains half of a character."), code="half")
        return names


class TagsField(forms.CharField):
    """Tags in one text, NAME=VALUE on each line; its value is a dict."""

    def clean(self, value: object) -> dict[str, str]:
        """
        Raises:
            ValidationError: a line has no "=", or cannot be stored.
        """
        tags: dict[str, str] = {}
        for line in filter(None, map(str.strip, super().clean(value).splitlines())):
            name, equals, tags[name] = line.partition("=")
            if not equals:
                text = _("%(line)s is not a name, an equals sign and a value.")
                raise forms.ValidationError(text, code="invalid", params={"line": line})
            if _SURROGATE.search(line):
                raise forms.ValidationError(_("A tag contains half of a character."), code="half")
        return tags

    @staticmethod
    def written(tags: Mapping[str, str]) -> str:
        """Return the text of tags; "" if it would be read as other ones."""
        text = "\n".join(f"{name}={value}" for name, value in sorted(tags.items()))
        try:
            return text if TagsField(required=False).clean(text) == dict(tags) else ""
        except forms.ValidationError:
            return ""


def _check_whole(text: str) -> None:
    if _SURROGATE.search(text):
        raise forms.ValidationError(_("It contains half of a character."), code="half")


def check_number(channels: int) -> None:
    """Check the number of channels of one publication: an entry of the log names all of them.

    Raises:
        ValidationError: there are more than `MAX_CHANNELS`.
    """
    if channels > MAX_CHANNELS:
        text = ngettext(
            "%(count)d channels are too many; the limit is %(limit)d.",
            "%(count)d channels are too many; the limit is %(limit)d.",
            channels,
        )
        params = {"count": channels, "limit": MAX_CHANNELS}
        raise forms.ValidationError(text, code="many", params=params)


def check_json(text: str) -> None:
    """Check that a text is one JSON value.

    Raises:
        ValidationError: it is not; the message says where.
    """
    try:
        # numbers stay text: their value does not matter, and may be too large to compute
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
    """The text has NaN or Infinity, which Python accepts and JSON does not have."""


def _refuse_constant(name: str) -> NoReturn:
    raise _ConstantError(name)


def _invalid(message: str, line: int, column: int) -> forms.ValidationError:
    params: dict[str, Any] = {"message": message, "line": line, "column": column}
    text = _("Not valid JSON at line %(line)s, column %(column)s: %(message)s.")
    return forms.ValidationError(text, code="invalid", params=params)


class PublishForm(forms.Form):
    """Channels and data of one publication, and what is rarely needed besides."""

    channel = ChannelsField(
        label=gettext_lazy("Channels"),
        help_text=gettext_lazy(
            "One or more, one per line or separated by spaces. Put a name with spaces in"
            " quotation marks."
        ),
        widget=text_area(2, "auto"),
    )
    # the class has another `data`, which stays: Django takes fields out of the class
    data = forms.CharField(  # type: ignore[assignment]
        label=gettext_lazy("Data (JSON)"),
        help_text=gettext_lazy('Any JSON value, for example {"text": "hi"}, "hi" or 42.'),
        strip=False,
        validators=[check_json],
        widget=text_area(10, "ltr"),
    )
    tags = TagsField(
        label=gettext_lazy("Tags"),
        help_text=gettext_lazy(
            "Subscribers can filter by them. One per line, for example league=first."
        ),
        required=False,
        widget=text_area(2, "auto"),
    )
    once = forms.CharField(
        label=gettext_lazy("Idempotency key"),
        help_text=gettext_lazy(
            "The same key in the same channel publishes once within five minutes."
        ),
        required=False,
        validators=[_check_whole],
        widget=text_line(),
    )
    version = forms.IntegerField(
        label=gettext_lazy("Version"),
        help_text=gettext_lazy(
            "Publish only if it is newer than the last version in the channel. Needs history."
        ),
        required=False,
        min_value=1,
        max_value=UINT64_MAX,
        widget=text_line("numeric"),
    )
    version_epoch = forms.CharField(
        label=gettext_lazy("Run of the version"),
        help_text=gettext_lazy("The first version of another run counts as newer."),
        required=False,
        max_length=MAX_EPOCH_LENGTH,
        validators=[_check_whole],
        widget=text_line(),
    )
    skip_history = forms.BooleanField(
        label=gettext_lazy("Deliver only, without keeping it in the history"), required=False
    )

    def more(self) -> list[forms.BoundField]:
        """Return the fields that are rarely needed."""
        return [self[name] for name in EXTRAS]

    @property
    def has_more(self) -> bool:
        """Whether one of them has a value or an error."""
        return any(field.value() or field.errors for field in self.more())

    @property
    def extras(self) -> dict[str, Any]:
        """Their values, as the service takes them."""
        values = {name: self.cleaned_data[name] for name in EXTRAS}
        return {name: value for name, value in values.items() if value}

    def clean(self) -> dict[str, Any]:
        """Check what is about more than one field."""
        values: dict[str, Any] = self.cleaned_data
        if values.get("version_epoch") and "version" in values and values["version"] is None:
            self.add_error("version_epoch", _("It needs a version."))
        if values.get("version") and values.get("skip_history"):
            self.add_error("version", _("What is not kept has no version."))
        return values
