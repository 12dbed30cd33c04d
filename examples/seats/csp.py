"""A strict content security policy. Django 6 has a middleware for one: `django.middleware.csp`."""

import secrets


def content_security_policy(get_response):
    """Allow files and the WebSocket of this site only, and the inline import map by its nonce."""

    def middleware(request):
        request.csp_nonce = secrets.token_urlsafe(16)
        socket = f"{'wss' if request.is_secure() else 'ws'}://{request.get_host()}"
        response = get_response(request)
        response.headers["Content-Security-Policy"] = (
            f"default-src 'self'; script-src 'self' 'nonce-{request.csp_nonce}'; "
            f"connect-src 'self' {socket}; object-src 'none'; base-uri 'none'; "
            "form-action 'self'; frame-ancestors 'none'"
        )
        return response

    return middleware
