"""Readers: files and foreign objects in, checked graphs and devices out."""
