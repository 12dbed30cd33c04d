from django.core.management.base import BaseCommand

from dashboard.shop import sell


class Command(BaseCommand):
    help = "Sell for some seconds, in a process of its own."

    def add_arguments(self, parser):
        parser.add_argument("seconds", nargs="?", type=int, default=60)

    def handle(self, *args, seconds, **options):
        sell(seconds)
