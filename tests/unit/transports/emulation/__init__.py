"""Tests of emulation, with SockJS, without servers."""
