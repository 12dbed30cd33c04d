"""Sign-in and sign-out, and the wrapper of every page that redirects to the sign-in."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import update_wrapper
from typing import TypeAlias
from urllib.parse import urlencode

from django import forms
from django.conf import settings
from django.contrib import auth, messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.middleware.csrf import rotate_token
from django.template.response import TemplateResponse
from django.urls import NoReverseMatch, reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_protect
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from realtime.config import sources

from ..shell import protect
from ..words import duration
from . import signin
from .limiter import Limited, address_of
from .panel import COOKIE, HOME, NotSignedIn, panel, session_of

DjangoView: TypeAlias = Callable[[HttpRequest], HttpResponse]


class SignInForm(forms.Form):
    """The form for the shared password."""

    password = forms.CharField(
        label=gettext_lazy("Password"),
        strip=False,
        widget=forms.PasswordInput(
            attrs={"autocomplete": "current-password", "autofocus": True, "maxlength": 1000}
        ),
    )


def protected(view: DjangoView) -> DjangoView:
    """Set the security headers on every response of a view, redirects and refusals included."""

    def protected_view(request: HttpRequest) -> HttpResponse:
        response = view(request)
        protect(request, response)
        return response

    return update_wrapper(protected_view, view)


@protected
@never_cache
@sensitive_post_parameters("password")
@require_http_methods(["GET", "HEAD", "POST"])
@csrf_protect
def sign_in(request: HttpRequest) -> HttpResponse:
    """Show the sign-in page; after the password, redirect to the requested page."""
    config = sources.current()
    values = request.POST if request.method == "POST" else request.GET
    target = own_path(values.get("next", ""))
    if request.method != "POST":
        if panel.find_operator(request) is not None:
            return HttpResponseRedirect(target)
        return show_form(request, SignInForm(), target)
    form = SignInForm(request.POST)
    if not form.is_valid():
        return show_form(request, form, target)
    now = time.time()
    try:
        is_right = signin.try_password(
            config, form.cleaned_data["password"], address_of(request, config), now
        )
    except Limited as limited:
        text = _("Too many attempts. Try again in %(time)s.")
        form.add_error(None, text % {"time": duration(limited.seconds)})
        response = show_form(request, form, target, status=429)
        response["Retry-After"] = str(limited.seconds)
        return response
    if not is_right:
        form.add_error(None, _("Wrong password."))
        return show_form(request, form, target)
    before = session_of(request)
    if before is not None:
        signin.end(before, now)
    rotate_token(request)
    response = HttpResponseRedirect(target)
    keep(request, response, signin.begin(now), now)
    return response


@protected
@never_cache
@require_POST
@csrf_protect
def sign_out(request: HttpRequest) -> HttpResponse:
    """End the session, and the login of a user."""
    session = session_of(request)
    if session is not None:
        signin.end(session, time.time())
    if panel.find_user(request) is not None:
        auth.logout(request)
    messages.success(request, _("You are signed out."))
    response = HttpResponseRedirect(panel.url("sign_in"))
    response.delete_cookie(COOKIE, path=root(), samesite="Strict")
    return response


def for_operators(view: DjangoView) -> DjangoView:
    """Return a view that redirects to the sign-in without an operator, and renews the session."""

    @protected
    @never_cache
    def guarded(request: HttpRequest) -> HttpResponse:
        try:
            response = view(request)
        except NotSignedIn:
            # after the sign-in a form is not sent again, but its page is shown
            target = request.path if request.method == "POST" else request.get_full_path()
            return HttpResponseRedirect(panel.url("sign_in", next=target))
        now = time.time()
        session = session_of(request)
        if session is not None and now - session.seen >= signin.RENEW_AFTER:
            keep(request, response, session._replace(seen=int(now)), now)
        return response

    return update_wrapper(guarded, view)


def or_first_page(view: DjangoView) -> DjangoView:
    """Return a view of the home page, or a redirect to the operator's first page."""

    def home(request: HttpRequest) -> HttpResponse:
        operator = panel.find_operator(request)
        pages = panel.listed_for(operator) if operator is not None else []
        if pages and pages[0].name != HOME:
            return HttpResponseRedirect(panel.url(pages[0].name))
        return view(request)

    return update_wrapper(home, view)


def show_form(
    request: HttpRequest, form: SignInForm, target: str, status: int = 200
) -> HttpResponse:
    """Render the sign-in page."""
    context = {
        "title": _("Sign in"),
        "form": form,
        "next": target,
        "has_password": signin.has_password(sources.current()),
        "login": login_url(target),
        "panel": panel,
        **panel.look(),
    }
    return TemplateResponse(request, "admin_panel/standalone/sign_in.html", context, status=status)


def keep(
    request: HttpRequest, response: HttpResponse, session: signin.OperatorSession, now: float
) -> None:
    """Set the cookie of a session, for the paths of the panel only."""
    response.set_cookie(
        COOKIE,
        signin.seal(sources.current(), session),
        max_age=session.left(now),
        path=root(),
        secure=request.is_secure() or settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Strict",
    )


def own_path(target: str) -> str:
    """Return a path of the panel to go to after the sign-in; other targets become its root."""
    home = root()
    own = target.startswith(home) and url_has_allowed_host_and_scheme(target, allowed_hosts=None)
    return target if own else home


def root() -> str:
    """Return the path of the panel, for example "/"."""
    return panel.url(HOME)


def login_url(target: str) -> str:
    """Return the URL where users log in; "" if the site does not have Django's admin."""
    try:
        return f"{reverse('admin:login')}?{urlencode({'next': target})}"
    except NoReverseMatch:
        return ""
