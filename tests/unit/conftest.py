"""What all unit tests share: Hypothesis without a clock, since a loaded machine is no fault of the code."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile("unit", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unit")
