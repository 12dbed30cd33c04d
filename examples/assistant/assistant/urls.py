from django.urls import include, path

from . import views

urlpatterns = [
    path("", views.begin_talk, name="begin"),
    path("<uuid:pk>", views.talk, name="talk"),
    path("<uuid:pk>/ask", views.ask, name="ask"),
    path("answers/", include("realtime.answers.urls")),
]
