"""URLs of the site with the chat: its page, Django's login, and what tests do to users."""

from __future__ import annotations

from django.contrib.auth import views as auth
from django.urls import include, path

from tests.site.chat import views

urlpatterns = [
    path("api", include("api.urls")),
    path("", views.page, name="chat-page"),
    path("login", auth.LoginView.as_view(template_name="chat/login.html"), name="login"),
    path("logout", auth.LogoutView.as_view(), name="logout"),
    path("async-logout", views.async_logout),
    path(
        "password",
        auth.PasswordChangeView.as_view(template_name="chat/login.html", success_url="/"),
    ),
    path("who", views.who),
    path("touch", views.touch),
    path("do/<str:action>", views.do),
]
