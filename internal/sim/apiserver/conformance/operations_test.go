// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package conformance

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
)

// operation is one request of a sequence. {ns} in it stands for the namespace of the sequence, {rv}
// for the resource version of the object when it was last seen, {old} for one before that.
type operation struct {
	Method, Path, Type, Body string
}

func (o operation) String() string {
	s := o.Method + " " + o.Path
	if o.Type != "" {
		s += " [" + o.Type + "]"
	}
	return s + " " + o.Body
}

// subject is a kind of which sequences create objects.
type subject struct {
	collection string
	apiVersion string
	kind       string
	specs      []string // JSON of everything but the metadata
	patches    []string // merge patches
	status     []string
	custom     bool
	scale      bool
}

var subjects = append(coreSubjects, []subject{
	{collection: "/api/v1/namespaces/{ns}/configmaps", apiVersion: "v1", kind: "ConfigMap",
		specs:   []string{`"data":{"a":"1"}`, `"data":{"a":"2","b":"3"}`, `"binaryData":{"c":"AAEC"}`, `"data":{"bad key":"1"}`, `"unknown":1,"data":{"a":"1"}`},
		patches: []string{`{"data":{"a":null}}`, `{"data":{"d":"4"}}`, `{"data":null}`, `{"immutable":true}`}},
	{collection: "/api/v1/namespaces/{ns}/secrets", apiVersion: "v1", kind: "Secret",
		specs:   []string{`"stringData":{"a":"1"}`, `"data":{"a":"MQ=="},"type":"Opaque"`, `"type":"example.com/own","data":{}`},
		patches: []string{`{"stringData":{"b":"2"}}`, `{"type":"other"}`}},
	{collection: "/apis/apps/v1/namespaces/{ns}/deployments", apiVersion: "apps/v1", kind: "Deployment", scale: true,
		specs: []string{
			`"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"nginx"}]}}}`,
			`"spec":{"replicas":3,"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"nginx:1","ports":[{"containerPort":80}],"resources":{"limits":{"cpu":"1000m"}}}],"volumes":[{"name":"v","configMap":{"name":"x"}}]}}}`,
		},
		patches: []string{`{"spec":{"replicas":2}}`, `{"spec":{"strategy":{"type":"Recreate","rollingUpdate":null}}}`, `{"spec":{"template":{"metadata":{"annotations":{"x":"y"}}}}}`,
			`{"spec":{"replicas":-1}}`, `{"spec":{"selector":{"matchLabels":{"a":"c"}}}}`, `{"spec":{"template":{"spec":{"dnsPolicy":"Sometimes"}}}}`, `{"spec":{"progressDeadlineSeconds":0}}`},
		status: []string{`{"status":{"replicas":2,"observedGeneration":1}}`}},
	{collection: "/apis/apps/v1/namespaces/{ns}/statefulsets", apiVersion: "apps/v1", kind: "StatefulSet", scale: true,
		specs: []string{
			`"spec":{"serviceName":"s","selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"nginx"}]}}}`,
			`"spec":{"serviceName":"other","selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"nginx","volumeMounts":[{"name":"d","mountPath":"/d"}]}]}},"volumeClaimTemplates":[{"metadata":{"name":"d"},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}]}`,
			`"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"c"}},"spec":{"containers":[{"name":"c","image":"nginx"}]}}}`,
		},
		patches: []string{`{"spec":{"replicas":2}}`, `{"spec":{"replicas":-1}}`, `{"spec":{"serviceName":"third"}}`, `{"spec":{"podManagementPolicy":"Parallel"}}`, `{"spec":{"template":{"spec":{"restartPolicy":"Never"}}}}`},
		status:  []string{`{"status":{"replicas":2,"readyReplicas":1}}`}},
	{collection: "/apis/apps/v1/namespaces/{ns}/daemonsets", apiVersion: "apps/v1", kind: "DaemonSet",
		specs: []string{
			`"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"nginx"}]}}}`,
			`"spec":{"selector":{"matchLabels":{"a":"c"}},"template":{"metadata":{"labels":{"a":"c"}},"spec":{"containers":[{"name":"c","image":"nginx","ports":[{"containerPort":70000}]}]}}}`,
			`"spec":{"selector":{"matchLabels":{"a":"c"}},"template":{"metadata":{"labels":{"a":"c"}},"spec":{"containers":[{"name":"c","image":"nginx"}]}}}`,
		},
		patches: []string{`{"spec":{"minReadySeconds":5}}`, `{"spec":{"minReadySeconds":-5}}`, `{"spec":{"template":{"metadata":{"annotations":{"x":"y"}}}}}`, `{"spec":{"updateStrategy":{"type":"Never"}}}`},
		status:  []string{`{"status":{"currentNumberScheduled":1,"numberMisscheduled":0,"desiredNumberScheduled":1,"numberReady":0}}`}},
	{collection: "/apis/batch/v1/namespaces/{ns}/jobs", apiVersion: "batch/v1", kind: "Job",
		specs: []string{
			`"spec":{"template":{"metadata":{"labels":{"x":"y"}},"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"nginx"}]}}}`,
			`"spec":{"completions":2,"parallelism":2,"completionMode":"Indexed","template":{"metadata":{"labels":{"x":"z"}},"spec":{"restartPolicy":"OnFailure","containers":[{"name":"c","image":"nginx"}]}}}`,
			`"spec":{"template":{"metadata":{"labels":{"x":"y"}},"spec":{"containers":[{"name":"c","image":"nginx"}]}}}`,
			`"spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"nginx"}]}}}`,
			`"spec":{"completions":-1,"backoffLimit":-1,"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"nginx","volumeMounts":[{"name":"v","mountPath":"/v"}]}]}}}`,
		},
		patches: []string{`{"spec":{"suspend":true}}`, `{"spec":{"completions":5}}`, `{"spec":{"parallelism":3}}`, `{"spec":{"template":{"spec":{"restartPolicy":"OnFailure"}}}}`, `{"spec":{"parallelism":-1}}`, `{"spec":{"completionMode":"Indexed"}}`},
		status: []string{
			`{"status":{"active":1,"ready":1,"startTime":"2026-01-01T00:00:00Z"}}`, `{"status":{"active":0,"ready":0,"succeeded":1}}`, `{"status":{"succeeded":0,"failed":1}}`, `{"status":{"failed":0}}`, `{"status":{"active":-1}}`,
			`{"status":{"conditions":[{"type":"Complete","status":"True"}]}}`,
			`{"status":{"active":0,"ready":0,"startTime":"2026-01-01T00:00:00Z","completionTime":"2026-01-01T00:01:00Z","conditions":[{"type":"SuccessCriteriaMet","status":"True"},{"type":"Complete","status":"True"}]}}`,
			`{"status":{"startTime":"2026-01-01T00:00:00Z","conditions":[{"type":"FailureTarget","status":"True"},{"type":"Failed","status":"True"}]}}`,
			`{"status":{"conditions":[{"type":"Complete","status":"True"},{"type":"Failed","status":"True"}]}}`, `{"status":{"conditions":[]}}`, `{"status":{"completionTime":"2025-01-01T00:00:00Z"}}`,
		}},
	{collection: "/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets", apiVersion: "policy/v1", kind: "PodDisruptionBudget",
		specs:   []string{`"spec":{"minAvailable":1,"selector":{"matchLabels":{"a":"b"}}}`, `"spec":{"maxUnavailable":"50%"}`, `"spec":{"minAvailable":1,"maxUnavailable":1}`, `"spec":{"minAvailable":-1}`},
		patches: []string{`{"spec":{"minAvailable":2}}`, `{"spec":{"minAvailable":"abc"}}`}},
	{collection: "/apis/networking.k8s.io/v1/namespaces/{ns}/networkpolicies", apiVersion: "networking.k8s.io/v1", kind: "NetworkPolicy",
		specs:   []string{`"spec":{"podSelector":{"matchLabels":{"c":"d"}}}`, `"spec":{"podSelector":{"matchLabels":{"a":"b"}},"ingress":[{"ports":[{"port":80}]}]}`, `"spec":{"podSelector":{"matchLabels":{"c":"d"}},"policyTypes":["Both"]}`, `"spec":{"podSelector":{"matchLabels":{"c":"d"}},"ingress":[{"ports":[{"port":70000}]}]}`},
		patches: []string{`{"spec":{"ingress":[{"from":[{}]}]}}`, `{"spec":{"ingress":[{"ports":[{"port":"http"}]}]}}`}},
	{collection: "/apis/autoscaling/v2/namespaces/{ns}/horizontalpodautoscalers", apiVersion: "autoscaling/v2", kind: "HorizontalPodAutoscaler",
		specs: []string{
			`"spec":{"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"x"},"maxReplicas":3}`, `"spec":{"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"x"},"maxReplicas":0}`,
			`"spec":{"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"x"},"minReplicas":4,"maxReplicas":3}`,
		},
		patches: []string{`{"spec":{"minReplicas":2}}`, `{"spec":{"minReplicas":-2}}`, `{"spec":{"scaleTargetRef":{"name":""}}}`}},
	{collection: "/apis/batch/v1/namespaces/{ns}/cronjobs", apiVersion: "batch/v1", kind: "CronJob",
		specs: []string{
			`"spec":{"schedule":"*/5 * * * *","jobTemplate":{"spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"nginx"}]}}}}}`,
			`"spec":{"schedule":"* * *","jobTemplate":{"spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"nginx"}]}}}}}`,
			`"spec":{"schedule":"* * * * *","jobTemplate":{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"nginx"}]}}}}}`,
		},
		patches: []string{`{"spec":{"suspend":true}}`, `{"spec":{"concurrencyPolicy":"Sometimes"}}`, `{"spec":{"startingDeadlineSeconds":-1}}`, `{"spec":{"successfulJobsHistoryLimit":-1}}`},
		status:  []string{`{"status":{"lastScheduleTime":"2026-01-01T00:00:00Z"}}`}},
	{collection: "/api/v1/namespaces/{ns}/serviceaccounts", apiVersion: "v1", kind: "ServiceAccount", specs: []string{``, `"automountServiceAccountToken":false`},
		patches: []string{`{"imagePullSecrets":[{"name":"x"}]}`}},
	{collection: "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases", apiVersion: "coordination.k8s.io/v1", kind: "Lease",
		specs: []string{`"spec":{"holderIdentity":"a","leaseDurationSeconds":15}`}, patches: []string{`{"spec":{"holderIdentity":"b"}}`}},
	{collection: "/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/roles", apiVersion: "rbac.authorization.k8s.io/v1", kind: "Role",
		specs: []string{`"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]`}, patches: []string{`{"rules":[]}`}},
	{collection: "/apis/conformance.ctrlkit.dev/v1/namespaces/{ns}/things", apiVersion: "conformance.ctrlkit.dev/v1", kind: "Thing", custom: true, scale: true,
		specs: []string{
			`"spec":{"size":1}`, `"spec":{"size":2,"tags":["a","b"],"ports":[{"name":"x","port":1}]}`, `"spec":{"size":-1}`, `"spec":{"size":5,"max":3}`,
			`"spec":{"unknown":{"deep":1},"size":1}`, `"spec":{"size":1,"free":{"any":{"thing":[1,"a",null]}}}`, `"spec":{"tags":["a","a"]}`, `"spec":{"port":"http"}`, ``,
			`"spec":{"size":"one"}`, `"status":{"ready":true},"spec":{"size":1}`,
		},
		patches: []string{`{"spec":{"size":7}}`, `{"spec":{"size":null}}`, `{"spec":{"name":"fixed"}}`, `{"spec":{"name":"other"}}`, `{"spec":{"free":{"x":1}}}`, `{"spec":null}`},
		status:  []string{`{"status":{"ready":true,"replicas":2}}`, `{"status":{"replicas":-1}}`, `{"status":{"unknown":1}}`, `{"spec":{"size":9},"status":{"ready":false}}`}},
	{collection: "/apis/conformance.ctrlkit.dev/v1/namespaces/{ns}/plains", apiVersion: "conformance.ctrlkit.dev/v1", kind: "Plain", custom: true,
		specs: []string{`"spec":{"a":1}`, `"spec":{"a":1},"status":{"b":2}`}, patches: []string{`{"status":{"b":3}}`, `{"spec":{"a":2}}`}},
}...)

var names = []string{"x", "y"}

// generator makes the operations of a sequence.
type generator struct{ *rand.Rand }

func pick[T any](g generator, list []T) T { return list[g.IntN(len(list))] }

func (g generator) next() operation {
	s := pick(g, subjects)
	path := s.collection + "/" + pick(g, names)
	switch n := g.IntN(100); {
	case n < 22:
		return g.create(s)
	case n < 36:
		return g.update(s, path)
	case n < 50:
		return g.patch(s, path)
	case n < 62:
		return g.apply(s, path)
	case n < 70:
		return g.writeStatus(s, path)
	case n < 75 && s.kind == "Pod":
		return g.act(path)
	case n < 75:
		return g.writeScale(s, path)
	case n < 83:
		return operation{Method: "GET", Path: path}
	case n < 90:
		return operation{Method: "GET", Path: s.collection + "?" + pick(g, []string{"", "labelSelector=l%3D1", "labelSelector=l+in+(1,2),!m", "fieldSelector=metadata.name%3Dx", "limit=1", "fieldSelector=spec.nothing%3D1", "resourceVersion=0"})}
	case n < 98:
		return g.delete(s, path)
	}
	return operation{Method: "DELETE", Path: s.collection + pick(g, []string{"", "?labelSelector=l%3D1"}), Type: "application/json", Body: `{"propagationPolicy":"Background"}`}
}

func (g generator) query() string {
	return pick(g, []string{"", "", "", "?fieldManager=me", "?fieldManager=you", "?dryRun=All", "?fieldValidation=Strict", "?fieldValidation=Ignore"})
}

// object returns the JSON of an object.
func (g generator) object(s subject, metadata string) string {
	parts := []string{fmt.Sprintf(`"apiVersion":%q,"kind":%q,"metadata":{%s}`, s.apiVersion, s.kind, metadata)}
	if spec := pick(g, s.specs); spec != "" {
		parts = append(parts, spec)
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func (g generator) metadata(name string) string {
	m := fmt.Sprintf(`"name":%q`, name)
	return m + pick(g, []string{"", "", "", `,"labels":{"l":"1"}`, `,"labels":{"l":"2","m":"1"}`, `,"annotations":{"k":"v"}`, `,"finalizers":["conformance.ctrlkit.dev/hold"]`, `,"labels":{"bad label!":"1"}`})
}

func (g generator) create(s subject) operation {
	o := operation{Method: "POST", Path: s.collection + g.query(), Type: "application/json"}
	switch g.IntN(12) {
	case 0:
		o.Body = g.object(s, `"name":"x","resourceVersion":"5"`)
	case 1:
		o.Body = g.object(s, `"name":"x","namespace":"elsewhere"`)
	case 2:
		o.Body = g.object(s, `"name":"Bad_Name"`)
	case 3:
		o.Body = g.object(s, ``)
		if s.kind == "Service" { // upstream, the allocation of an address fails first, with an error of its own
			o.Body = g.object(s, g.metadata("x"))
		}
	case 4:
		o.Path = strings.Replace(o.Path, "{ns}", "missing", 1)
		o.Body = g.object(s, g.metadata("x"))
	default:
		o.Body = g.object(s, g.metadata(pick(g, names)))
	}
	return o
}

func (g generator) update(s subject, path string) operation {
	name := path[strings.LastIndex(path, "/")+1:]
	version := pick(g, []string{``, `,"resourceVersion":"{rv}"`, `,"resourceVersion":"{rv}"`, `,"resourceVersion":"{rv}"`, `,"resourceVersion":"{old}"`, `,"uid":"0000"`})
	return operation{Method: "PUT", Path: path + g.query(), Type: "application/json", Body: g.object(s, g.metadata(name)+version)}
}

func (g generator) patch(s subject, path string) operation {
	o := operation{Method: "PATCH", Path: path + g.query()}
	switch n := g.IntN(10); {
	case n < 4:
		o.Type, o.Body = "application/merge-patch+json", pick(g, s.patches)
	case n < 6:
		o.Type, o.Body = "application/merge-patch+json", pick(g, []string{
			`{"metadata":{"labels":{"l":"1"}}}`, `{"metadata":{"labels":null}}`, `{"metadata":{"finalizers":[]}}`, `{"metadata":{"finalizers":null}}`,
			`{"metadata":{"resourceVersion":"{old}","labels":{"n":"1"}}}`, `{"metadata":{"resourceVersion":"{rv}","labels":{"n":"2"}}}`, `{}`, `[1]`, `{"metadata":{"name":"z"}}`,
		})
	case n < 8:
		o.Type, o.Body = "application/json-patch+json", pick(g, []string{
			`[{"op":"add","path":"/metadata/annotations","value":{"p":"q"}}]`, `[{"op":"remove","path":"/metadata/labels"}]`, `[{"op":"test","path":"/kind","value":"No"}]`,
			`[{"op":"add","path":"/metadata/finalizers","value":["conformance.ctrlkit.dev/hold"]}]`, `[{"op":"remove","path":"/metadata/finalizers"}]`,
		})
	default:
		o.Type, o.Body = "application/strategic-merge-patch+json", pick(g, append([]string{`{"metadata":{"annotations":{"s":"m"}}}`}, s.patches...))
	}
	return o
}

func (g generator) apply(s subject, path string) operation {
	name := path[strings.LastIndex(path, "/")+1:]
	query := pick(g, []string{"?fieldManager=me", "?fieldManager=you", "?fieldManager=me&force=true", "?fieldManager=you&force=true", ""})
	version := pick(g, []string{``, ``, ``, ``, `,"resourceVersion":"1"`, `,"resourceVersion":"{rv}"`})
	return operation{Method: "PATCH", Path: path + query, Type: "application/apply-patch+yaml", Body: g.object(s, g.metadata(name)+version)}
}

// act has something done with a Pod by one of its subresources.
func (g generator) act(path string) operation {
	name := path[strings.LastIndex(path, "/")+1:]
	if g.IntN(3) > 0 {
		return operation{Method: "POST", Path: path + "/binding" + pick(g, []string{"", "", "?dryRun=All"}), Type: "application/json", Body: pick(g, []string{
			`{"metadata":{"name":"` + name + `"},"target":{"name":"n"}}`, `{"metadata":{"name":"` + name + `","labels":{"z":"1"},"annotations":{"z":"2"}},"target":{"kind":"Node","name":"n"}}`,
			`{"metadata":{"name":"other"},"target":{"name":"n"}}`, `{"metadata":{"name":"` + name + `"},"target":{"kind":"Pod"}}`, `{"metadata":{"name":"` + name + `","uid":"1"},"target":{"name":"n"}}`,
		})}
	}
	return operation{Method: "POST", Path: path + "/eviction", Type: "application/json", Body: pick(g, []string{
		`{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"` + name + `"}}`, `{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"other"}}`,
		`{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"` + name + `"},"deleteOptions":{"preconditions":{"uid":"1"}}}`,
	})}
}

func (g generator) writeStatus(s subject, path string) operation {
	body := pick(g, append([]string{`{"metadata":{"labels":{"from":"status"}}}`, `{"metadata":{"annotations":{"from":"status"}}}`}, s.status...))
	return operation{Method: "PATCH", Path: path + "/status" + g.query(), Type: "application/merge-patch+json", Body: body}
}

func (g generator) writeScale(s subject, path string) operation {
	switch g.IntN(3) {
	case 0:
		return operation{Method: "GET", Path: path + "/scale"}
	default:
		return operation{Method: "PATCH", Path: path + "/scale" + g.query(), Type: "application/merge-patch+json", Body: pick(g, []string{`{"spec":{"replicas":4}}`, `{"spec":{"replicas":-1}}`})}
	}
}

func (g generator) delete(s subject, path string) operation {
	return operation{Method: "DELETE", Path: path + pick(g, []string{"", "", "?dryRun=All"}), Type: "application/json", Body: pick(g, []string{
		`{"propagationPolicy":"Background"}`, `{"propagationPolicy":"Background"}`, `{"preconditions":{"uid":"0000"}}`, `{"propagationPolicy":"Nonsense"}`,
		`{"preconditions":{"resourceVersion":"{old}"}}`, `{"gracePeriodSeconds":-5}`,
	})}
}

// sequence makes the operations of a seed.
func sequence(seed uint64, length int) []operation {
	g := generator{rand.New(rand.NewPCG(seed, 7))}
	list := make([]operation, length)
	for i := range list {
		list[i] = g.next()
	}
	return list
}

func mustJSON(v any) string {
	data, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		panic(err)
	}
	return string(data)
}
