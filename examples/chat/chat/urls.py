from django.contrib.auth.views import LogoutView
from django.urls import path
from django.views.generic import RedirectView

from . import views

urlpatterns = [
    path("", RedirectView.as_view(pattern_name="enter")),
    path("enter", views.enter, name="enter"),
    path("leave", LogoutView.as_view(next_page="enter"), name="leave"),
    path("<slug:name>/", views.room, name="room"),
]
