"""A worker that serves at once, and ends at a signal."""

import signal
import socket
import sys

if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[2])) as supervisor:
        supervisor.send(b"ready 0")
        signal.pause()
