"""Optimizers and schedules: those that are read and made by the core, and those that run here."""
