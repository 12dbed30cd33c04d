"""Tests of `realtime.redis`, against real servers."""
