// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

"use strict";

ctrlkit.examples = {
  "Pods of a StatefulSet": {
    document: `// Rollout replaces the pods of a StatefulSet one by one.
decl Rollout for StatefulSet {
    state {
        // The pods that run now.
        pods []Pod {
            labels/app=\${target.Name}
            owned
        }

        settings ConfigMap {
            name=\${target.Name}-settings
        }

        budget PodDisruptionBudget {
            name=\${target.Name}
        }
    }

    action {
        // Delete the oldest pod with old settings.
        ReplaceNext(pods, settings, budget)

        // Report what runs.
        UpdateStatus(pods)
    }
}
`,
    definitions: "",
  },
  "Kinds of your own": {
    document: `bind traffic.example.com/v1 ./definitions.yaml

alias Route traffic.example.com/v1/Route

decl Routing for Route {
    state {
        service Service {
            name=\${target.spec.service.name}
        }

        routes []Route {
            fields/.spec.service.port=80
        }
    }

    action {
        Report(service, routes)
    }
}
`,
    definitions: `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: routes.traffic.example.com
spec:
  group: traffic.example.com
  scope: Namespaced
  names: {kind: Route, plural: routes}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              service:
                type: object
                properties:
                  name: {type: string}
                  port: {type: integer}
`,
  },
  "With mistakes": {
    document: `bind apps/v1 k8s.io/api/apps/v1

decl Cleanup for Deplyment {
    state {
        pods []Pod {
            labels/app=\${target.Nam}
            field/.spec.nodeName=a
        }
    }

    action {
        Evict(pod)
    }
}
`,
    definitions: "",
  },
};
