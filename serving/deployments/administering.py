"""A running Serve application, seen from outside: what its replicas report, and changing a deployment's
``user_config`` alone, which Serve hands to the running replicas without a restart.

Serve knows two kinds of applications. One that came from a file (``serve run FILE``, ``serve deploy``, a RayService) is
changed by applying its configuration again; everything but the ``user_config`` is the same, so nothing is built anew.
One that came from a program (``answer up``) is changed by deploying its deployments again, under the versions that
they have.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import Any

import ray
from ray import serve
from ray._private.services import find_gcs_addresses
from ray.serve._private.constants import SERVE_NAMESPACE
from ray.serve._private.deploy_utils import get_deploy_args
from ray.serve.context import _get_global_client
from ray.serve.generated.serve_pb2 import ApplicationArgs, DeploymentArgs
from ray.serve.schema import ApplicationStatus, ServeApplicationSchema, ServeDeploySchema

from serving.answer.errors import AnswerError, UnavailableError
from serving.deployments.handles import translate
from serving.deployments.replacing import Report

POLL_S = 0.2
CALL_S = 30.0


class NotRunningError(UnavailableError):
    """There is no running service to change."""

    code = "service_not_running"


class Service:
    """The application ``name`` on the Ray cluster that this process has joined."""

    def __init__(self, name: str) -> None:
        client = _get_global_client(raise_if_no_controller_running=False)
        if client is None:
            raise NotRunningError("Serve does not run on this Ray cluster: start a service with `answer up`.")
        self._client: Any = client
        self._controller: Any = client._controller  # noqa: SLF001 (Serve's public API changes whole applications)
        self._name = name
        found = serve.status().applications
        if name not in found:
            there = ", ".join(sorted(found)) or "none"
            raise NotRunningError(f"No application {name!r} runs here; these do: {there}. Name one with --app.")
        if found[name].status is not ApplicationStatus.RUNNING:
            raise NotRunningError(
                f"The application {name!r} is {found[name].status.value}: try again once it is RUNNING."
            )

    @classmethod
    def join(cls, name: str, address: str | None) -> Service:
        """Joins the Ray cluster at ``address``, or the one that runs on this machine.

        Raises :class:`NotRunningError`.
        """
        if address is None and len(here := find_gcs_addresses()) > 1:
            raise NotRunningError(
                f"Several Ray clusters run here: name one of {', '.join(sorted(here))} with --address."
            )
        logging.getLogger("ray.serve").setLevel(logging.WARNING)  # importing Serve sets it to INFO
        try:
            ray.init(
                address=address or "auto",
                namespace=SERVE_NAMESPACE,
                log_to_driver=False,
                logging_level="ERROR",
                configure_logging=False,
            )
        except (ConnectionError, ValueError, RuntimeError) as error:
            where = f"at {address}" if address else "on this machine"
            raise NotRunningError(f"No Ray cluster answers {where}: start a service with `answer up`.") from error
        return cls(name)

    def user_config(self, deployment: str) -> dict[str, Any]:
        """What the deployment is configured with now."""
        return dict(self._infos()[deployment].deployment_config.user_config or {})

    def configure(self, deployment: str, user_config: Mapping[str, Any]) -> None:
        """Gives the deployment's replicas another ``user_config``. Nothing else changes, and nothing starts anew."""
        configs: dict[str, ServeApplicationSchema] = ray.get(self._controller.get_app_configs.remote())
        if self._name in configs:
            self._apply(configs, deployment, user_config)
        else:
            self._deploy(deployment, user_config)

    def reports(self, deployment: str, timeout_s: float) -> dict[str, Report]:
        """What each replica reports, by its name. Raises :class:`~serving.answer.errors.AnswerError`.

        Serve chooses which replica answers a call: it is asked until each has.
        """
        handle = serve.get_deployment_handle(deployment, app_name=self._name)
        deadline = time.monotonic() + timeout_s
        found: dict[str, Report] = {}
        while time.monotonic() < deadline:
            states = serve.status().applications[self._name].deployments[deployment].replica_states
            # One that is being configured is asked nothing for a moment.
            if states and set(map(str, states)) == {"RUNNING"} and len(found) >= sum(states.values()):
                return found
            try:
                report: Report = handle.report.remote().result(timeout_s=CALL_S)
            except TimeoutError:  # it is busy, or being replaced
                continue
            except Exception as error:
                raise _typed(error, deployment) from error
            if report.replica in found:
                time.sleep(POLL_S)
            found[report.replica] = report
        raise UnavailableError(
            f"Not every replica of {deployment} answered within {timeout_s:.0f} s: see `serve status`."
        )

    def _infos(self) -> dict[str, Any]:
        """Ray's description of each deployment of the application."""
        everything = ray.get(self._controller.list_deployments_internal.remote())
        return {found.name: info for found, (info, _) in everything.items() if found.app_name == self._name}

    def _apply(
        self, configs: Mapping[str, ServeApplicationSchema], deployment: str, user_config: Mapping[str, Any]
    ) -> None:
        document = configs[self._name].model_dump(exclude_unset=True)
        others = [one for one in document.get("deployments", []) if one["name"] != deployment]
        ours = [one for one in document.get("deployments", []) if one["name"] == deployment] or [{"name": deployment}]
        document["deployments"] = [*others, {**ours[0], "user_config": dict(user_config)}]
        changed = {**configs, self._name: ServeApplicationSchema.model_validate(document)}
        capacity = self._client.get_serve_details().get("target_capacity")
        schema = ServeDeploySchema(applications=list(changed.values()), target_capacity=capacity)
        ray.get(self._controller.apply_config.remote(schema))

    def _deploy(self, deployment: str, user_config: Mapping[str, Any]) -> None:
        arguments = []
        for name, info in self._infos().items():
            if name == deployment:
                info.deployment_config.user_config = dict(user_config)
            deploy = get_deploy_args(
                name,
                replica_config=info.replica_config,
                ingress=info.ingress,
                deployment_config=info.deployment_config,
                version=info.version,
                route_prefix=info.route_prefix,
            )
            arguments.append(
                DeploymentArgs(
                    deployment_name=name,
                    deployment_config=deploy["deployment_config_proto_bytes"],
                    replica_config=deploy["replica_config_proto_bytes"],
                    deployer_job_id=info.deployer_job_id,
                    ingress=info.ingress,
                    route_prefix=info.route_prefix or None,
                ).SerializeToString()
            )
        application = ApplicationArgs(external_scaler_enabled=False).SerializeToString()
        ray.get(self._controller.deploy_applications.remote({self._name: arguments}, {self._name: application}))


def _typed(error: BaseException, deployment: str) -> BaseException:
    known = translate(error, deployment.lower())
    if isinstance(known, AnswerError):
        return known
    return UnavailableError(
        f"The replicas of {deployment} did not answer ({type(error).__name__}): see `serve status`."
    )
