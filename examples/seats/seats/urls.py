from django.urls import path

from . import views

urlpatterns = [
    path("", views.room),
    path("<slug:name>/", views.room),
]
