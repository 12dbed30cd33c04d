from django.urls import path

from . import views

urlpatterns = [
    path("", views.page, name="page"),
    path("state", views.state, name="state"),
    path("sell", views.sell, name="sell"),
]
