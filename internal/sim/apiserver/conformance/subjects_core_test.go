// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package conformance

// coreSubjects are the kinds that Pods are made of, and those by which they are reached.
var coreSubjects = []subject{
	{collection: "/api/v1/namespaces/{ns}/pods", apiVersion: "v1", kind: "Pod",
		specs: []string{
			`"spec":{"containers":[{"name":"c","image":"nginx"}]}`,
			`"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"nginx:1","ports":[{"containerPort":80}],"env":[{"name":"A","value":"b"}],"volumeMounts":[{"name":"v","mountPath":"/v"}]}],"volumes":[{"name":"v","emptyDir":{}}]}`,
			`"spec":{"nodeName":"n","containers":[{"name":"c","image":"nginx"}]}`,
			`"spec":{"containers":[{"name":"c","image":"nginx","volumeMounts":[{"name":"none","mountPath":"/v"}]}]}`,
			`"spec":{"restartPolicy":"Sometimes","containers":[{"name":"C","image":""}]}`,
			`"spec":{"schedulingGates":[{"name":"example.com/gate"}],"containers":[{"name":"c","image":"nginx"}]}`,
		},
		patches: []string{`{"spec":{"activeDeadlineSeconds":10}}`, `{"spec":{"nodeName":"other"}}`, `{"spec":{"containers":[{"name":"c","image":"nginx:2"}]}}`, `{"spec":{"schedulingGates":null}}`,
			`{"spec":{"tolerations":[{"key":"k","operator":"Exists"}]}}`, `{"spec":{"restartPolicy":"OnFailure"}}`, `{"spec":{"containers":[]}}`},
		status: []string{`{"status":{"phase":"Running"}}`, `{"status":{"phase":"Succeeded"}}`, `{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`}},
	{collection: "/api/v1/namespaces/{ns}/services", apiVersion: "v1", kind: "Service",
		specs: []string{
			`"spec":{"selector":{"a":"b"},"ports":[{"port":80}]}`, `"spec":{"clusterIP":"None","selector":{"a":"b"}}`, `"spec":{"type":"NodePort","ports":[{"name":"http","port":80,"targetPort":"http"},{"name":"https","port":443}]}`,
			`"spec":{"type":"LoadBalancer","ports":[{"port":80}],"externalTrafficPolicy":"Local"}`, `"spec":{"type":"ExternalName","externalName":"example.com"}`,
			`"spec":{"ports":[]}`, `"spec":{"ports":[{"port":0}]}`, `"spec":{"ports":[{"port":80},{"port":81}]}`, `"spec":{"type":"Other","ports":[{"port":80}]}`, `"spec":{"type":"ExternalName"}`,
		},
		patches: []string{`{"spec":{"type":"NodePort"}}`, `{"spec":{"type":"ClusterIP"}}`, `{"spec":{"ports":[{"port":81}]}}`, `{"spec":{"ports":[{"port":70000}]}}`, `{"spec":{"sessionAffinity":"ClientIP"}}`,
			`{"spec":{"type":"ExternalName","externalName":"example.com"}}`, `{"spec":{"clusterIP":"None"}}`},
		status: []string{`{"status":{"loadBalancer":{"ingress":[{"ip":"1.2.3.4"}]}}}`}},
	{collection: "/api/v1/namespaces/{ns}/persistentvolumeclaims", apiVersion: "v1", kind: "PersistentVolumeClaim",
		specs: []string{
			`"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}`, `"spec":{"accessModes":["ReadWriteMany"],"storageClassName":"fast","resources":{"requests":{"storage":"2Gi"}}}`,
			`"spec":{"accessModes":[],"resources":{"requests":{"storage":"1Gi"}}}`, `"spec":{"accessModes":["ReadWriteOnce"]}`, `"spec":{"accessModes":["Other"],"resources":{"requests":{"storage":"0"}}}`,
		},
		patches: []string{`{"spec":{"volumeName":"v"}}`, `{"spec":{"volumeName":"w"}}`, `{"spec":{"resources":{"requests":{"storage":"3Gi"}}}}`, `{"spec":{"accessModes":["ReadOnlyMany"]}}`, `{"spec":{"storageClassName":"slow"}}`},
		status:  []string{`{"status":{"phase":"Bound","capacity":{"storage":"1Gi"}}}`, `{"status":{"phase":"Pending"}}`}},
	{collection: "/apis/networking.k8s.io/v1/namespaces/{ns}/ingresses", apiVersion: "networking.k8s.io/v1", kind: "Ingress",
		specs: []string{
			`"spec":{"defaultBackend":{"service":{"name":"s","port":{"number":80}}}}`, `"spec":{"rules":[{"host":"example.com","http":{"paths":[{"path":"/","pathType":"Prefix","backend":{"service":{"name":"s","port":{"name":"http"}}}}]}}]}`,
			`"spec":{}`, `"spec":{"rules":[{"host":"Bad_Host","http":{"paths":[{"path":"x","pathType":"Exact","backend":{"service":{"name":"s","port":{"number":80}}}}]}}]}`,
		},
		patches: []string{`{"spec":{"ingressClassName":"c"}}`, `{"spec":{"tls":[{"hosts":["example.com"],"secretName":"t"}]}}`, `{"spec":{"defaultBackend":{"service":{"name":"s","port":{"number":70000}}}}}`},
		status:  []string{`{"status":{"loadBalancer":{"ingress":[{"ip":"1.2.3.4"}]}}}`}},
}
