# Copyright The ctrlkit Authors
# SPDX-License-Identifier: Apache-2.0
"""An operator that keeps a Secret for each ConfigMap with the label app."""
from kubernetes import client, config, watch
from kubernetes.client.rest import ApiException

config.load_kube_config()
core = client.CoreV1Api()
for event in watch.Watch().stream(core.list_config_map_for_all_namespaces, label_selector="app"):
    app = event["object"].metadata
    owner = client.V1OwnerReference(api_version="v1", kind="ConfigMap", name=app.name, uid=app.uid, controller=True)
    secret = client.V1Secret(metadata=client.V1ObjectMeta(name=app.name, owner_references=[owner]))
    try:
        core.create_namespaced_secret(app.namespace, secret)
    except ApiException as e:
        if e.status != 409:
            raise
