"""A strict content security policy. Django 6 has one of its own: `django.middleware.csp`."""

import secrets


def content_security_policy(get_response):
    """Allow files of this site only, and the inline import map by its nonce."""

    def middleware(request):
        request.csp_nonce = secrets.token_urlsafe(16)
        response = get_response(request)
        response.headers["Content-Security-Policy"] = (
            f"default-src 'self'; script-src 'self' 'nonce-{request.csp_nonce}'; "
            "object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
        )
        return response

    return middleware
