"""Whether what is said of replicas agrees: numbers, bounds, delays and targets."""

from __future__ import annotations

from serving.configuration.deployments import AutoscalingSettings, DeploymentSettings, DeploymentsSettings

FIXED = "router"
"""The deployment whose replicas are counted, not scaled: each holds its share of the gate's budgets."""


def scaling_faults(deployments: DeploymentsSettings) -> list[str]:
    """Names every contradiction, and what to set so that there is none."""
    faults: list[str] = []
    for name, deployment in deployments.named().items():
        key = f"deployments.{name}"
        if deployment.autoscaling is None:
            continue
        if name == FIXED:
            faults.append(_fixed_fault(key, deployment, deployment.autoscaling))
            continue
        if deployment.num_replicas is not None:
            faults.append(f"{key}.num_replicas fixes what {key}.autoscaling is to move: set {key}.num_replicas to null")
        faults += _bound_faults(f"{key}.autoscaling", deployment.autoscaling)
        faults += _delay_faults(f"{key}.autoscaling", deployment.autoscaling)
        faults += _target_faults(key, deployment, deployment.autoscaling)
    return faults


def _fixed_fault(key: str, deployment: DeploymentSettings, scaling: AutoscalingSettings) -> str:
    replicas = deployment.num_replicas or scaling.initial_replicas or scaling.min_replicas
    return (
        f"{key} cannot scale with load, since each of its replicas holds a fixed share of the gate's budgets: "
        f"set {key}.autoscaling to null and {key}.num_replicas to {replicas}"
    )


def _bound_faults(key: str, scaling: AutoscalingSettings) -> list[str]:
    faults: list[str] = []
    most = max(scaling.max_replicas, scaling.min_replicas)
    if scaling.max_replicas < scaling.min_replicas:
        faults.append(
            f"{key}.max_replicas is {scaling.max_replicas}, fewer than min_replicas {scaling.min_replicas}: "
            f"set {key}.max_replicas to {most} or more"
        )
    initial = scaling.initial_replicas
    if initial is not None and not scaling.min_replicas <= initial <= most:
        faults.append(
            f"{key}.initial_replicas is {initial}, which is not between {scaling.min_replicas} and {most}: "
            f"set {key}.initial_replicas to {min(max(initial, scaling.min_replicas), most)}"
        )
    return faults


def _delay_faults(key: str, scaling: AutoscalingSettings) -> list[str]:
    """A delay shorter than the look-back acts on an average that still holds the load from before the change."""
    look_back = scaling.look_back_period_s
    return [
        f"{key}.{name} is {delay:g}, less than the look_back_period_s {look_back:g} that Ray averages the load over, "
        f"so it would act on load that has passed: set {key}.{name} to {look_back!r} or more"
        + (f", or look_back_period_s down to {delay:g}" if delay > 10.0 else ", and look_back_period_s as low as 11")
        for name, delay in (
            ("upscale_delay_s", scaling.upscale_delay_s),
            ("downscale_delay_s", scaling.downscale_delay_s),
        )
        if delay < look_back
    ]


def _target_faults(key: str, deployment: DeploymentSettings, scaling: AutoscalingSettings) -> list[str]:
    target, most = scaling.target_ongoing_requests, deployment.max_ongoing_requests
    if target <= most:
        return []
    return [
        f"{key}.autoscaling.target_ongoing_requests is {target:g}, more than {key}.max_ongoing_requests {most}, so "
        f"every replica would be full before another is started: set {key}.autoscaling.target_ongoing_requests to "
        f"{max(1, most * 2 // 3)} or less"
    ]
