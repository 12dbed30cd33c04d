from django.contrib.auth.views import LogoutView
from django.urls import path

from . import views

urlpatterns = [
    path("", views.page, name="page"),
    path("read", views.read, name="read"),
    path("read/<int:pk>", views.read, name="read"),
    path("order", views.order, name="order"),
    path("enter", views.enter, name="enter"),
    path("leave", LogoutView.as_view(next_page="enter"), name="leave"),
]
