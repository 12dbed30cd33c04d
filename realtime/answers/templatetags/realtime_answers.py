"""Template tags of `realtime.answers`.

{% load realtime_answers %}<div hx-sse:connect="{% answer_url answer %}" hx-sse:close="end">
"""

from __future__ import annotations

from django import template
from django.urls import reverse

from realtime.answers.models import Answer

register = template.Library()


@register.simple_tag
def answer_url(answer: Answer) -> str:
    """Return the address of an answer's text as server-sent events, escaped for a page."""
    return f"{reverse('realtime_answers:events', args=[answer.pk])}?format=html"


@register.simple_tag
def answer_stop_url(answer: Answer) -> str:
    """Return the address to which a POST stops an answer."""
    return reverse("realtime_answers:stop", args=[answer.pk])
