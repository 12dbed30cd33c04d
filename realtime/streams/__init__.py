"""Streams of channels: order, completeness and recovery."""
