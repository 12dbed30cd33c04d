"""Tests of SockJS without servers."""
