"""The composition root: settings in, a Serve application out. ``serve run configs/embedded.yaml`` starts here."""

from __future__ import annotations

import os
from typing import Any

from ray.serve import Application, Deployment

from serving.deployments.embedder import EmbedderDeployment
from serving.deployments.gateway import GatewayDeployment
from serving.deployments.logs import serve_logging
from serving.deployments.reranker import RerankerDeployment
from serving.deployments.retriever import RetrieverDeployment
from serving.deployments.router import RouterDeployment
from serving.deployments.synthesizer import SynthesizerDeployment
from serving.deployments.verifier import VerifierDeployment
from serving.layering.files import SettingsFile
from serving.layering.layers import layered
from serving.settings import DeploymentSettings, LoggingSettings, Settings


def configured(
    deployment: Deployment, chosen: DeploymentSettings, logs: LoggingSettings, *, threads: int = 1
) -> Deployment:
    """A deployment with its settings. ``threads`` is the width of its CPU operations.

    Ray sets ``OMP_NUM_THREADS=1`` in workers unless ``runtime_env`` says otherwise.
    """
    environment = {
        "OMP_NUM_THREADS": str(threads),
        "TOKENIZERS_PARALLELISM": "false",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "VLLM_NO_USAGE_STATS": "1",
        # vLLM would set up logging anew, which closes the handlers that Serve has opened.
        "VLLM_CONFIGURE_LOGGING": "0",
    }
    return deployment.options(
        **_replicas(chosen),
        # Without one, Serve would not tell a replica that its ``user_config`` was taken away again.
        user_config={} if hasattr(deployment.func_or_class, "reconfigure") else None,
        max_ongoing_requests=chosen.max_ongoing_requests,
        max_queued_requests=chosen.max_queued_requests,
        health_check_period_s=chosen.health_check_period_s,
        health_check_timeout_s=chosen.health_check_timeout_s,
        graceful_shutdown_timeout_s=chosen.graceful_shutdown_timeout_s,
        graceful_shutdown_wait_loop_s=0.5,
        ray_actor_options={
            "num_cpus": chosen.num_cpus,
            "num_gpus": chosen.num_gpus,
            "runtime_env": {"env_vars": environment},
        },
        # The gateway writes its requests' lines itself.
        logging_config=serve_logging(logs, calls=deployment is not GatewayDeployment),
    )


def _replicas(chosen: DeploymentSettings) -> dict[str, Any]:
    """Ray's options for a number of replicas, or for one that follows the load."""
    if chosen.autoscaling is None:
        return {"num_replicas": chosen.num_replicas or 1}
    return {"autoscaling_config": chosen.autoscaling.model_dump(exclude_none=True)}


def application(settings: Settings) -> Application:
    """Binds the seven deployments: Gateway → Router → Retriever, Embedder, Reranker, Verifier, Synthesizer."""
    chosen, models, logs = settings.deployments, settings.models, settings.logging
    embedder = configured(EmbedderDeployment, chosen.embedder, logs, threads=models.embedder.threads).bind(settings)
    retriever = configured(RetrieverDeployment, chosen.retriever, logs).bind(settings, embedder)
    reranker = configured(RerankerDeployment, chosen.reranker, logs, threads=models.reranker.threads).bind(
        settings, embedder
    )
    verifier = configured(VerifierDeployment, chosen.verifier, logs, threads=models.verifier.threads).bind(settings)
    synthesizer = configured(SynthesizerDeployment, chosen.synthesizer, logs).options(**chosen.synthesizer.placement())
    router = configured(RouterDeployment, chosen.router, logs).bind(
        settings,
        retriever=retriever,
        embedder=embedder,
        reranker=reranker,
        verifier=verifier,
        synthesizer=synthesizer.bind(settings),
    )
    return configured(GatewayDeployment, chosen.gateway, logs).bind(settings, router)


def build(args: dict[str, Any]) -> Application:
    """What a Serve file's ``import_path`` names: the file's ``args``, and over them the environment's settings.

    The environment is that of the process which builds: Ray's head, or the application's ``runtime_env``. Raises
    :class:`~serving.settings.SettingsError`.
    """
    return application(layered(SettingsFile("args", args), os.environ).settings)
