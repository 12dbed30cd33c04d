from django.urls import path

from . import views

urlpatterns = [
    path("", views.page, name="page"),
    path("add", views.add, name="add"),
    path("<int:pk>/turn", views.turn, name="turn"),
    path("<int:pk>/remove", views.remove, name="remove"),
]
