// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// field returns a field of an answer.
func field(answer map[string]any, path ...string) any {
	for _, name := range path[:len(path)-1] {
		answer, _ = answer[name].(map[string]any)
	}
	return answer[path[len(path)-1]]
}

func (w world) work() {
	for w.Work() { //nolint:revive // each call does one piece of work
	}
}

// A claim that a Pod with a Node mounts is not removed before the Pod.
func TestClaimProtection(t *testing.T) {
	const claims, pods = "/api/v1/namespaces/default/persistentvolumeclaims", "/api/v1/namespaces/default/pods"
	tests := map[string]struct {
		node string
		held bool
	}{"scheduled": {`"nodeName":"n",`, true}, "not scheduled": {"", false}}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			_, claim := w.do("POST", claims, `{"metadata":{"name":"c"},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}`)
			if got := fmt.Sprint(field(claim, "metadata", "finalizers")); got != "[kubernetes.io/pvc-protection]" {
				t.Errorf("a new claim has the finalizers %s", got)
			}
			code, pod := w.do("POST", pods, `{"metadata":{"name":"p"},"spec":{`+test.node+`"containers":[{"name":"c","image":"i"}],"volumes":[{"name":"v","persistentVolumeClaim":{"claimName":"c"}}]}}`)
			if code != 201 {
				t.Fatal(pod)
			}
			w.do("DELETE", claims+"/c", "")
			w.work()
			if code, _ := w.do("GET", claims+"/c", ""); (code == 200) != test.held {
				t.Errorf("with its Pod there, reading the claim gives %d", code)
			}
			w.do("DELETE", pods+"/p", `{"gracePeriodSeconds":0}`)
			w.work()
			if code, _ := w.do("GET", claims+"/c", ""); code != 404 {
				t.Errorf("without its Pod, reading the claim gives %d", code)
			}
		})
	}
}

func TestServices(t *testing.T) {
	w := newWorld(t)
	const services = "/api/v1/namespaces/default/services"
	service := func(name, spec string) string {
		return `{"metadata":{"name":"` + name + `"},"spec":{"ports":[{"port":80,` + spec + `}`
	}
	create := func(name, port, rest string, want int, text string) map[string]any {
		t.Helper()
		code, answer := w.do("POST", services, strings.Replace(service(name, port), `80,}`, `80}`, 1)+`]`+rest+`}}`)
		if message, _ := answer["message"].(string); code != want || !strings.Contains(message, text) {
			t.Errorf("%s: %d %v, want %d %s", name, code, answer, want, text)
		}
		return answer
	}
	a := create("a", `"nodePort":30001`, `,"type":"NodePort"`, 201, "")
	ip, _ := field(a, "spec", "clusterIP").(string)
	create("b", `"nodePort":30001`, `,"type":"NodePort"`, 422, "provided port is already allocated")
	create("c", `"nodePort":80`, `,"type":"NodePort"`, 422, "The range of valid ports is 30000-32767")
	create("d", ``, `,"clusterIP":"`+ip+`"`, 422, "failed to allocate IP "+ip+": provided IP is already allocated")
	create("e", ``, `,"clusterIP":"None"`, 201, "")
	create("f", ``, `,"clusterIP":"None"`, 201, "")
	create("g", ``, ``, 201, "")
	code, g := w.do("PATCH", services+"/g", `{"spec":{"type":"NodePort"}}`)
	ports, _ := field(g, "spec", "ports").([]any)
	if code != 200 || len(ports) != 1 || ports[0].(map[string]any)["nodePort"] == nil {
		t.Errorf("a Service that becomes a NodePort has no port: %v", g)
	}
	w.do("DELETE", services+"/a", "")
	create("h", `"nodePort":30001`, `,"type":"NodePort","clusterIP":"`+ip+`"`, 201, "")
}

// What the server has given a Service for its type goes with the type, and stays otherwise.
func TestServicesThatChange(t *testing.T) {
	w := newWorld(t)
	const services = "/api/v1/namespaces/default/services"
	create := func(name, spec string) map[string]any {
		t.Helper()
		code, answer := w.do("POST", services, `{"metadata":{"name":"`+name+`"},"spec":{`+spec+`}}`)
		if code != 201 {
			t.Fatal(answer)
		}
		return answer
	}
	change := func(name, patch string) (int, map[string]any) { return w.do("PATCH", services+"/"+name, patch) }

	create("class", `"type":"LoadBalancer","loadBalancerClass":"example.com/c","ports":[{"port":80}]`)
	if code, answer := change("class", `{"spec":{"loadBalancerClass":"other"}}`); code != 422 {
		t.Errorf("another class: %d %v", code, answer)
	}
	code, answer := change("class", `{"spec":{"type":"ClusterIP"}}`)
	if code != 200 || field(answer, "spec", "loadBalancerClass") != nil || field(answer, "spec", "allocateLoadBalancerNodePorts") != nil {
		t.Errorf("a Service that is no LoadBalancer anymore: %d %v", code, answer)
	}

	lb := create("lb", `"type":"LoadBalancer","externalTrafficPolicy":"Local","ports":[{"port":80,"name":"a"}]`)
	change("lb/status", `{"status":{"loadBalancer":{"ingress":[{"ip":"1.2.3.4"},{"hostname":"h"}]}}}`)
	for ports, kept := range map[string]bool{`{"port":80,"name":"b"}`: false, `{"port":81,"name":"a"}`: true} {
		_, answer = w.do("PATCH", services+"/lb?dryRun=All", `{"spec":{"ports":[`+ports+`]}}`)
		if got := nodePort(answer); got == nil || got == nodePort(lb) != kept {
			t.Errorf("%s instead of %v: %v", ports, field(lb, "spec", "ports"), got)
		}
	}
	_, answer = w.do("GET", services+"/lb", "")
	if got := fmt.Sprint(field(answer, "status", "loadBalancer", "ingress")); got != "[map[ip:1.2.3.4 ipMode:VIP] map[hostname:h]]" {
		t.Errorf("the addresses of a load balancer are %s", got)
	}
	_, answer = change("lb", `{"spec":{"type":"ExternalName","externalName":"example.com"}}`)
	if spec, _ := field(answer, "spec").(map[string]any); spec["healthCheckNodePort"] != nil || nodePort(answer) != nil {
		t.Errorf("a Service outside the cluster has ports on Nodes: %v", answer)
	}

	// Who writes the older field only changes the newer one with it.
	create("ports", `"type":"NodePort","ports":[{"port":80}]`)
	code, answer = change("ports", `{"spec":{"clusterIP":"None"}}`)
	message, _ := answer["message"].(string)
	for _, want := range []string{"spec.clusterIPs[0]: Invalid value: \"None\": may not be set to 'None' for NodePort services", `["None"]: may not change once set`} {
		if code != 422 || !strings.Contains(message, want) || strings.Contains(message, "first value") {
			t.Errorf("a Service that gives up its address: %d %s, want %s", code, message, want)
		}
	}
}

func nodePort(service map[string]any) any {
	ports, _ := field(service, "spec", "ports").([]any)
	if len(ports) == 0 {
		return nil
	}
	return ports[0].(map[string]any)["nodePort"]
}

func TestAdmission(t *testing.T) {
	w := newWorld(t)
	for path, body := range map[string]string{
		"/apis/scheduling.k8s.io/v1/priorityclasses": `{"metadata":{"name":"high"},"value":1000,"preemptionPolicy":"Never"}`,
		"/apis/storage.k8s.io/v1/storageclasses":     `{"metadata":{"name":"fast","annotations":{"storageclass.kubernetes.io/is-default-class":"true"}},"provisioner":"x"}`,
	} {
		if code, answer := w.do("POST", path, body); code != 201 {
			t.Fatal(answer)
		}
	}
	pod := func(class string) (int, map[string]any) {
		return w.do("POST", "/api/v1/namespaces/default/pods?dryRun=All", `{"metadata":{"name":"p"},"spec":{"priorityClassName":"`+class+`","containers":[{"name":"c","image":"i"}]}}`)
	}
	if _, p := pod("high"); field(p, "spec", "priority") != 1000.0 || field(p, "spec", "preemptionPolicy") != "Never" {
		t.Errorf("a Pod of the class high: %v", p)
	}
	if _, p := pod("system-node-critical"); field(p, "spec", "priority") != 2000001000.0 {
		t.Errorf("a Pod of a class of the system: %v", p)
	}
	if code, p := pod("none"); code != 403 || field(p, "message") != `pods "p" is forbidden: no PriorityClass with name none was found` {
		t.Errorf("a Pod of a class that is missing: %d %v", code, p)
	}
	if _, c := w.do("POST", "/api/v1/namespaces/default/persistentvolumeclaims", `{"metadata":{"name":"c"},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}`); field(c, "spec", "storageClassName") != "fast" {
		t.Errorf("a claim without a class: %v", c)
	}
	if code, a := w.do("DELETE", "/api/v1/namespaces/default", ""); code != 403 || !strings.Contains(fmt.Sprint(a["message"]), "this namespace may not be deleted") {
		t.Errorf("deleting the namespace default: %d %v", code, a)
	}
}

func TestOptions(t *testing.T) {
	const maps = "/api/v1/namespaces/default/configmaps"
	// Validation limits ConfigMaps to less than what etcd takes, so that this is another kind.
	large := `{"metadata":{"name":"l"},"spec":{"containers":[{"name":"c","image":"i","env":[{"name":"K","value":"` + strings.Repeat("x", 7<<18) + `"}]}]}}`
	tests := []struct {
		method, path, body string
		code               int
		want               string // a part of the message
	}{
		{"POST", maps + "?dryRun=Some", `{"metadata":{"name":"x"}}`, 422, `dryRun: Unsupported value: ["Some"]: supported values: "All"`},
		{"PUT", maps + "/x?dryRun=Some", `{"metadata":{"name":"x"}}`, 422, "UpdateOptions.meta.k8s.io"},
		{"PATCH", maps + "/x?dryRun=Some", `{}`, 422, "PatchOptions.meta.k8s.io"},
		{"DELETE", maps + "/x?dryRun=Some", "", 422, "DeleteOptions.meta.k8s.io"},
		{"DELETE", maps + "/x", `{"dryRun":["Some"]}`, 422, "DeleteOptions.meta.k8s.io"},
		{"DELETE", maps + "?dryRun=Some", "", 422, "DeleteOptions.meta.k8s.io"},
		{"PATCH", maps + "/x?force=true", `{}`, 422, "may not be specified for non-apply patch"},
		{"POST", maps + "?fieldValidation=Some", `{"metadata":{"name":"x"}}`, 422, "fieldValidation: Unsupported value"},
		{"POST", maps + "?unknown=1", `{"metadata":{"name":"x"}}`, 201, ""},
		{"GET", maps + "?limit=many", "", 400, "invalid syntax"},
		{"GET", maps + "?resourceVersionMatch=Exact", "", 422, "resourceVersionMatch is forbidden unless resourceVersion is provided"},
		{"GET", maps + "?resourceVersion=1&resourceVersionMatch=Some", "", 422, "Unsupported value"},
		{"GET", maps + "?labelSelector=a%20b%20c", "", 400, "unable to parse requirement"},
		{"GET", maps + "?fieldSelector=data.a%3Db", "", 400, "is not a known field selector"},
		{"GET", maps + "?sendInitialEvents=true", "", 422, "sendInitialEvents is forbidden for list"},
		{"GET", maps + "?continue=x", "", 400, "continue key is not valid"},
		{"POST", "/api/v1/namespaces/default/pods", large, 500, "etcdserver: request is too large"},
		{"GET", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "", 405, "the server does not allow this method on the requested resource"},
	}
	w := newWorld(t)
	w.create("x", "")
	for _, test := range tests {
		if test.path == maps+"?unknown=1" {
			w.do("DELETE", maps+"/x", "")
		}
		code, answer := w.do(test.method, test.path, test.body)
		if message, _ := answer["message"].(string); code != test.code || !strings.Contains(message, test.want) {
			t.Errorf("%s %s: %d %q, want %d %q", test.method, test.path, code, message, test.code, test.want)
		}
	}
	if !slices.Contains(w.names(), "x") {
		t.Error("a refused deletion has removed the object")
	}
}

// Without kind or apiVersion, a custom resource is refused.
func TestCustomResourceTypes(t *testing.T) {
	w := world{t, newWidgets(t)}
	tests := map[string]struct {
		header string
		code   int
		want   string
	}{
		"no kind":         {`"apiVersion":"example.com/v1",`, 400, "Object 'Kind' is missing"},
		"no apiVersion":   {`"kind":"Widget",`, 400, "the API version in the data () does not match the expected API version (example.com/v1)"},
		"another version": {`"apiVersion":"example.com/v2","kind":"Widget",`, 400, "the API version in the data (example.com/v2) does not match the expected API version (example.com/v1)"},
		"another kind":    {`"apiVersion":"example.com/v1","kind":"Gadget",`, 422, `kind: Invalid value: "Gadget": must be Widget`},
		"as it should be": {`"apiVersion":"example.com/v1","kind":"Widget",`, 201, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			code, answer := w.do("POST", "/apis/example.com/v1/namespaces/default/widgets", `{`+test.header+`"metadata":{"generateName":"x-"}}`)
			if message, _ := answer["message"].(string); code != test.code || !strings.Contains(message, test.want) {
				t.Errorf("%d %q, want %d %q", code, message, test.code, test.want)
			}
		})
	}
}

// What is stored of a new claim, and of a new Job without labels, lacks defaults that the server
// sets when it reads: the first update is written although the client has changed nothing, the
// next is not.
func TestFirstUpdateStoresDefaults(t *testing.T) {
	w := newWorld(t)
	for kind, tt := range map[string]struct {
		path, body string
		writes     bool
	}{
		"claim": {
			"/api/v1/namespaces/default/persistentvolumeclaims",
			`{"metadata":{"name":"x"},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}`, true,
		},
		"Job": {
			"/apis/batch/v1/namespaces/default/jobs",
			`{"metadata":{"name":"x"},"spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}}`, true,
		},
		"Job with labels": {
			"/apis/batch/v1/namespaces/default/jobs",
			`{"metadata":{"name":"y","labels":{"a":"b"}},"spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}}`, false,
		},
		"ConfigMap": {"/api/v1/namespaces/default/configmaps", `{"metadata":{"name":"x"}}`, false},
	} {
		code, created := w.do("POST", tt.path, tt.body)
		if code != 201 {
			t.Fatalf("%s: %d %v", kind, code, created)
		}
		version := func(answer map[string]any) any { return field(answer, "metadata", "resourceVersion") }
		path := fmt.Sprint(tt.path, "/", field(created, "metadata", "name"))
		_, first := w.do("PATCH", path, `{}`)
		_, second := w.do("PATCH", path, `{}`)
		if wrote := version(first) != version(created); wrote != tt.writes || version(second) != version(first) {
			t.Errorf("%s: versions %v, %v, %v", kind, version(created), version(first), version(second))
		}
	}
}
