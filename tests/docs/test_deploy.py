"""The deploy kit fits the service: names, paths, ports and times, and it has no secret.

The daemons that read these files are not there, so what they would refuse is looked for here.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from realtime.config.options import CONFIG_FIELDS, Config
from realtime.monitoring.table import HISTOGRAM, METRICS
from realtime.node.node import SHUTDOWN_TIMEOUT
from realtime.transports.servers import daphne_start, launch
from tests.conftest import require

ROOT = Path(__file__).resolve().parent.parent.parent
KIT = ROOT / "deploy"
FILES = sorted(path for path in KIT.rglob("*") if path.is_file() and path.name != ".env")
YAML_FILES = [path for path in FILES if path.suffix == ".yaml"]
DOCKERFILE = (KIT / "Dockerfile").read_text()
OWN_SETTINGS = (ROOT / "messaging_project" / "settings.py").read_text()
LABELS = {"instance", "le", "job"}
"""Those that Prometheus adds."""

CONFIG = Config()
ANY_FILE = pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(KIT)))


def read(name: str) -> Any:
    return yaml.safe_load((KIT / name).read_text())


def manifests() -> dict[str, Any]:
    """Kind → manifest, as kustomize would find them."""
    names = read("kubernetes/kustomization.yaml")["resources"]
    found = [read(f"kubernetes/{name}") for name in names]
    assert {f"{name}" for name in names} == {
        path.name for path in (KIT / "kubernetes").iterdir() if path.stem != "kustomization"
    }
    return {manifest["kind"]: manifest for manifest in found}


MANIFESTS = manifests()
DEPLOYMENT = MANIFESTS["Deployment"]["spec"]
POD = DEPLOYMENT["template"]["spec"]
[CONTAINER] = POD["containers"]
[MIGRATION] = POD["initContainers"]
COMPOSE_FILES = ("compose.yaml", "compose.postgresql.yaml")
COMPOSE, WITHOUT_REDIS = map(read, COMPOSE_FILES)
SERVICES = [
    pytest.param(service, id=f"{name} {each}")
    for name, kit in zip(COMPOSE_FILES, (COMPOSE, WITHOUT_REDIS), strict=True)
    for each, service in kit["services"].items()
]
UNIT = (KIT / "systemd" / "realtime.service").read_text()
NGINX = (KIT / "nginx" / "site.conf").read_text()


# names and secrets


@ANY_FILE
def test_options_and_settings_exist(path: Path) -> None:
    text = path.read_text()
    options = set(re.findall(r"\bSERVICE_([A-Z0-9_]+)\b", text))
    settings = set(re.findall(r"\bDJANGO_[A-Z_]+\b", text))
    assert {name.lower() for name in options} <= set(CONFIG_FIELDS)
    assert {name for name in settings if name not in OWN_SETTINGS} == set()


SECRETS = [f"SERVICE_{name.upper()}" for name, option in CONFIG_FIELDS.items() if not option.repr]
SECRETS += ["DJANGO_SECRET_KEY", "DJANGO_DATABASE"]
SECRETS += ["REDIS_PASSWORD", "REDISCLI_AUTH", "POSTGRES_PASSWORD"]
WITHOUT_PASSWORD = ("", "redis://:@redis:6379/0", "postgresql://site:@postgres:5432/site")


@ANY_FILE
def test_no_secret_has_a_value(path: Path) -> None:
    given = re.findall(rf"\b({'|'.join(SECRETS)})[:=] *(\S.*)", path.read_text())
    for name, value in given:
        # from the environment, without a default; of a URL no more than the password is secret
        assert re.sub(r"\$\{[A-Z_]+:\?[^}]*\}", "", value) in WITHOUT_PASSWORD, name


def test_each_secret_of_compose_is_made(tmp_path: Path) -> None:
    made = [
        subprocess.run(["sh", KIT / "make-env"], capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]

    values = [dict(line.split("=") for line in text.splitlines()) for text in made]
    texts = [(KIT / name).read_text() for name in COMPOSE_FILES]
    needed = set(re.findall(r"\$\{([A-Z_]+):\?", "".join(texts)))
    assert set(values[0]) == needed
    assert all(re.fullmatch("[0-9a-f]{64}", value) for value in values[0].values())
    assert not set(values[0].values()) & set(values[1].values())
    assert len(set(values[0].values())) == len(needed)


# the image


def instructions() -> list[tuple[str, str]]:
    """Instruction and arguments, with continued lines joined."""
    text = re.sub(r"^#.*\n", "", DOCKERFILE, flags=re.MULTILINE).replace("\\\n", " ")
    return [(line.split()[0], line.partition(" ")[2]) for line in text.splitlines() if line]


def test_image_runs_as_a_user_without_rights_and_has_a_health_check() -> None:
    found = dict(instructions())  # the last of each

    user, group = map(int, found["USER"].split(":"))
    assert user == group == POD["securityContext"]["runAsUser"] > 0
    assert f"--uid {user}" in DOCKERFILE
    assert f"{CONFIG.health_handler_prefix}/live" in found["HEALTHCHECK"]
    for name in ("CMD", "HEALTHCHECK"):
        assert json.loads(found[name][found[name].index("[") :])[0] == "python"
    assert all("slim" in arguments for name, arguments in instructions() if name == "FROM")
    assert not {"ADD", "MAINTAINER"} & {name for name, _ in instructions()}


def test_image_has_what_it_copies_and_its_context_nothing_else() -> None:
    copied = [
        source
        for name, arguments in instructions()
        if name == "COPY" and not arguments.startswith("--from")
        for source in arguments.split()[:-1]
    ]
    sent = (KIT / "Dockerfile.dockerignore").read_text().splitlines()

    assert all((ROOT / source).exists() for source in copied)
    assert sorted(line[1:] for line in sent if line.startswith("!")) == sorted(copied)
    assert sent[0] == "*"


def test_packages_beside_the_requirements_have_the_versions_of_the_tests() -> None:
    pinned = (ROOT / "pyproject.toml").read_text()
    for line in (KIT / "extras.txt").read_text().splitlines():
        assert line.startswith("#") or f'"{line}"' in pinned


@pytest.mark.parametrize(
    "command",
    [
        json.loads(dict(instructions())["CMD"]),
        COMPOSE["services"]["site"]["command"],
        re.findall(r"^ExecStart=\S*/(python .*)$", UNIT, re.MULTILINE)[0].split(),
    ],
    ids=["image", "compose", "systemd"],
)
def test_command_line_is_understood(command: list[str]) -> None:
    python, module, name, *arguments = command
    options, rest = launch.parser().parse_known_args(arguments)
    assert (python, module, name) == ("python", "-m", "realtime")
    assert options.port == 8000
    assert [re.fullmatch(r"\w+\.asgi:application", each) is not None for each in rest] == [True]


# times


def test_each_platform_waits_for_the_end() -> None:
    variables = COMPOSE["x-site"]["environment"]
    waits = {
        "compose": (
            float(variables["SERVICE_DRAIN_SECONDS"]),
            float(COMPOSE["services"]["site"]["stop_grace_period"].removesuffix("s")),
        ),
        "systemd": (
            float(re.findall(r"SERVICE_DRAIN_SECONDS=(\d+)", UNIT)[0]),
            float(re.findall(r"TimeoutStopSec=(\d+)", UNIT)[0]),
        ),
        "kubernetes": (
            float(MANIFESTS["ConfigMap"]["data"]["SERVICE_DRAIN_SECONDS"])
            + float(CONTAINER["lifecycle"]["preStop"]["exec"]["command"][1]),
            float(POD["terminationGracePeriodSeconds"]),
        ),
    }

    for drain, wait in waits.values():
        assert wait > drain + SHUTDOWN_TIMEOUT


def test_quiet_connections_are_not_cut() -> None:
    annotations = MANIFESTS["Ingress"]["metadata"]["annotations"]
    timeouts = re.findall(r"proxy_(?:read|send)_timeout (\d+)s", NGINX)
    timeouts += [value for name, value in annotations.items() if name.endswith("-timeout")]
    assert len(timeouts) == 4
    assert min(map(int, timeouts)) > daphne_start.PING_INTERVAL + daphne_start.PING_TIMEOUT


# Kubernetes


def test_manifests_name_each_other() -> None:
    names = {manifest["metadata"]["name"] for manifest in MANIFESTS.values()}
    labels = DEPLOYMENT["template"]["metadata"]["labels"]
    [port] = CONTAINER["ports"]
    [service_port] = MANIFESTS["Service"]["spec"]["ports"]
    [path] = MANIFESTS["Ingress"]["spec"]["rules"][0]["http"]["paths"]

    assert names == {"realtime"}
    assert DEPLOYMENT["selector"]["matchLabels"] == labels
    assert MANIFESTS["Service"]["spec"]["selector"] == labels
    assert MANIFESTS["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"] == labels
    assert MANIFESTS["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"] == labels
    assert MANIFESTS["HorizontalPodAutoscaler"]["spec"]["scaleTargetRef"]["kind"] == "Deployment"
    assert service_port["targetPort"] == port["name"]
    assert path["backend"]["service"]["port"]["name"] == service_port["name"]
    assert path["backend"]["service"]["name"] in names
    assert port["containerPort"] == 8000
    mounts = {mount["name"] for mount in CONTAINER["volumeMounts"]}
    assert mounts == {volume["name"] for volume in POD["volumes"]}


def test_pods_are_asked_at_the_paths_of_the_service() -> None:
    prefix = CONFIG.health_handler_prefix
    annotations = DEPLOYMENT["template"]["metadata"]["annotations"]
    assert CONTAINER["livenessProbe"]["httpGet"]["path"] == f"{prefix}/live"
    assert CONTAINER["startupProbe"]["httpGet"]["path"] == f"{prefix}/live"
    assert CONTAINER["readinessProbe"]["httpGet"]["path"] == f"{prefix}/ready"
    assert annotations["prometheus.io/path"] == CONFIG.metrics_handler_prefix
    assert MANIFESTS["ConfigMap"]["data"]["SERVICE_HEALTH"] == "true"


def test_pod_has_no_rights_that_it_does_not_need() -> None:
    assert POD["securityContext"]["runAsNonRoot"] is True
    assert POD["automountServiceAccountToken"] is False
    for container in (CONTAINER, MIGRATION):
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }


def test_pods_take_connections_of_the_proxy_and_of_prometheus_alone() -> None:
    policy = MANIFESTS["NetworkPolicy"]["spec"]
    [rule] = policy["ingress"]
    namespaces = [each["namespaceSelector"]["matchLabels"] for each in rule["from"]]
    assert policy["policyTypes"] == ["Ingress"]
    assert namespaces == [
        {"kubernetes.io/metadata.name": name} for name in ("ingress-nginx", "monitoring")
    ]
    assert rule["ports"] == [{"port": CONTAINER["ports"][0]["name"]}]


def test_compose_file_without_redis_is_the_other_one_over_postgresql() -> None:
    ours, other = WITHOUT_REDIS["services"], COMPOSE["services"]
    variables, others = (dict(kit["x-site"]["environment"]) for kit in (WITHOUT_REDIS, COMPOSE))

    assert ours.keys() - other.keys() == {"postgres"}
    assert other.keys() - ours.keys() == {"redis"}
    assert variables.pop("SERVICE_ENGINE") == "postgresql"
    assert variables.pop("DJANGO_DATABASE")
    assert others.pop("SERVICE_REDIS_URL")
    assert variables == others
    assert ours["nginx"] == other["nginx"]
    for name in ("migrate", "site"):
        differ = {"environment", "depends_on"}
        assert {key: value for key, value in ours[name].items() if key not in differ} == {
            key: value for key, value in other[name].items() if key not in differ
        }
        assert ours[name]["depends_on"]["postgres"] == {"condition": "service_healthy"}


@pytest.mark.parametrize("service", SERVICES)
def test_service_of_compose_has_no_rights_that_it_does_not_need(service: dict[str, Any]) -> None:
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    # it listens on port 80, and its master starts workers of another user
    is_nginx = service.get("image", "").startswith("nginx:")
    needed = {"CHOWN", "NET_BIND_SERVICE", "SETGID", "SETUID"} if is_nginx else set()
    assert {*service.get("cap_add", [])} == needed
    assert service.get("privileged") is None


@pytest.mark.parametrize("name", ["migrate", "site"])
def test_containers_of_compose_write_where_the_pod_does(name: str) -> None:
    service = COMPOSE["services"][name]
    volumes = [volume.partition(":")[2] for volume in service["volumes"]]
    assert {*volumes, *service["tmpfs"]} == {
        mount["mountPath"] for mount in CONTAINER["volumeMounts"]
    }


def test_pod_begins_with_the_tables_of_its_database() -> None:
    assert MIGRATION["command"] == COMPOSE["services"]["migrate"]["command"]
    for name in ("image", "envFrom", "volumeMounts"):
        assert MIGRATION[name] == CONTAINER[name]


def test_forms_are_taken_from_the_host_of_the_site() -> None:
    settings = MANIFESTS["ConfigMap"]["data"]
    [rule] = MANIFESTS["Ingress"]["spec"]["rules"]
    assert settings["DJANGO_ALLOWED_HOSTS"] == rule["host"]
    assert settings["DJANGO_CSRF_TRUSTED_ORIGINS"] == f"https://{rule['host']}"


def test_one_pod_drains_at_a_time() -> None:
    assert DEPLOYMENT["strategy"]["rollingUpdate"] == {"maxUnavailable": 0, "maxSurge": 1}
    assert MANIFESTS["PodDisruptionBudget"]["spec"]["maxUnavailable"] == 1
    assert "replicas" not in DEPLOYMENT, "each `kubectl apply` would undo the autoscaler"


# metrics


def expressions() -> Iterator[tuple[str, str]]:
    """Name and expression of each alert, panel and metric of the autoscaler."""
    for rule in read("prometheus/alerts.yaml")["groups"][0]["rules"]:
        yield f"alert {rule['alert']}", rule["expr"]
    for panel in json.loads((KIT / "grafana" / "realtime.json").read_text())["panels"]:
        for target in panel["targets"]:
            yield f"panel {panel['title']}", target["expr"]
    for metric in MANIFESTS["HorizontalPodAutoscaler"]["spec"]["metrics"]:
        yield "autoscaler", metric["pods"]["metric"]["name"]


@pytest.mark.parametrize(("where", "expression"), list(expressions()))
def test_metrics_and_their_labels_exist(where: str, expression: str) -> None:
    series = {
        f"{metric.name}{suffix}": metric
        for metric in METRICS.values()
        for suffix in (("_bucket", "_sum", "_count") if metric.type == HISTOGRAM else ("",))
    }
    used = re.findall(r"\brealtime_\w+", expression)
    labels = {
        label.strip()
        for group in re.findall(r"\bby \(([^)]*)\)", expression)
        for label in group.split(",")
    } | set(re.findall(r"[{,]\s*(\w+)=", expression))

    assert used, where
    assert set(used) <= set(series), where
    assert labels <= LABELS.union(*(series[name].labels for name in used)), where
    assert expression.count("(") == expression.count(")")


def test_alerts_have_what_their_receivers_show() -> None:
    for rule in read("prometheus/alerts.yaml")["groups"][0]["rules"]:
        assert set(rule) - {"for"} == {"alert", "expr", "labels", "annotations"}
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert rule["annotations"]["summary"].endswith(".")


# programs that check, where they are installed


@pytest.mark.parametrize("path", YAML_FILES, ids=lambda path: str(path.relative_to(KIT)))
def test_file_is_yaml(path: Path) -> None:
    assert isinstance(yaml.safe_load(path.read_text()), dict)


def test_systemd_understands_the_unit(tmp_path: Path) -> None:
    text = re.sub(r"^ExecStart=\S+", "ExecStart=/bin/true", UNIT, flags=re.MULTILINE)
    unit = tmp_path / "realtime.service"
    unit.write_text(text)

    analyze = require("systemd-analyze", "Debian's systemd")

    checked = subprocess.run(
        [analyze, "verify", "--man=no", "--recursive-errors=no", unit],
        capture_output=True,
        text=True,
        check=False,
    )

    assert [line for line in checked.stderr.splitlines() if unit.name in line] == []
