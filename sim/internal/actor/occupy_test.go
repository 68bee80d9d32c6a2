// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package actor

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ctrlkit/ctrlkit/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/sim/internal/cluster"
)

// child is a ConfigMap that the operator is about to create.
const child = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"y","labels":{"app":"1"},"annotations":{"own":"1"},"finalizers":["f.example.com/f"],
	"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"p","uid":"OWNER"}]},"data":{"a":"2"}}`

// ofPod returns an object whose owner is the Pod of the world.
func (w *world) ofPod(body string) string {
	return strings.ReplaceAll(body, "OWNER", string(w.first["pods default/p"]))
}

// apply returns a server-side apply of the operator.
func (w *world) apply(path, body string) *apiserver.Request {
	r := w.request("PATCH", path+"?fieldManager=operator", body)
	r.ContentType = "application/apply-patch+yaml"
	return r
}

// An occupant has the name of the object that is about to be created, and nothing else of it. It
// leaves after ten minutes.
func TestOccupy(t *testing.T) {
	tests := map[string]func(w *world) *apiserver.Request{
		"a creation": func(w *world) *apiserver.Request { return w.request("POST", configMaps, w.ofPod(child)) },
		"an apply":   func(w *world) *apiserver.Request { return w.apply(configMaps+"/y", w.ofPod(child)) },
		"an apply in YAML": func(w *world) *apiserver.Request {
			return w.apply(configMaps+"/y", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  labels: {app: '1'}\n")
		},
	}
	for name, request := range tests {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				others := w.unchanged("configmaps default/y")
				w.Occupy(request(w))
				const occupant = `{"another":"1"} annotations{"foreign":"true"} labels{"app":"another"}`
				w.isObject("then", "configmaps default/y", occupant)
				o, err := w.cluster.LookUp("configmaps default/y")
				w.equal("its owners", true, err == nil && len(o.GetOwnerReferences()) == 0)
				w.equal("a creation", 409, w.write("POST", configMaps, w.ofPod(child)))
				w.pass(10*time.Minute - time.Nanosecond)
				w.isObject("just before its end", "configmaps default/y", occupant)
				w.noted()
				w.pass(time.Nanosecond)
				w.isObject("at its end", "configmaps default/y", "none")
				w.noted("slow down by 10m0s")
				others()
				w.equal("a creation then", 201, w.write("POST", configMaps, w.ofPod(child)))
			})
		})
	}
}

// An occupant of another controller is one for metav1.GetControllerOf, and its controller lives as
// long as it does.
func TestOccupyByController(t *testing.T) {
	for _, test := range []struct{ path, body, occupant, controller string }{
		{configMaps, child, "configmaps default/y", "replicationcontrollers default/controller-of-y"},
		{"/api/v1/namespaces", `{"metadata":{"name":"n"}}`, "namespaces /n", "clusterroles.rbac.authorization.k8s.io /controller-of-n"},
	} {
		inWorld(t, func(w *world) {
			w.OccupyByController(w.request("POST", test.path, w.ofPod(test.body)))
			o, err := w.cluster.LookUp(test.occupant)
			if err != nil {
				t.Fatal(err)
			}
			controller, err := w.cluster.LookUp(test.controller)
			if err != nil {
				t.Fatal(err)
			}
			owner := metav1.GetControllerOf(o)
			w.equal("its controller", true, owner != nil && owner.UID == controller.GetUID() && owner.Name == controller.GetName())
			w.equal("marks", []string{"true", "true"}, []string{o.GetAnnotations()[cluster.Foreign], controller.GetAnnotations()[cluster.Foreign]})
			for w.cluster.Server.Work() {
			}
			w.pass(10*time.Minute - time.Nanosecond)
			w.equal("there before its end", true, w.object(test.occupant) != "none" && w.object(test.controller) != "none")
			w.pass(time.Nanosecond)
			for w.cluster.Server.Work() { // a Namespace takes a while
			}
			w.isObject("at its end", test.occupant, "none")
			w.isObject("at its end", test.controller, "none")
			w.noted("slow down by 10m0s")
		})
	}
}

// Where the name is taken already, nothing is created, and nothing is deleted later: neither what
// was there, nor what the operator puts in the place of the occupant.
func TestOccupyDeletesOnlyItsOccupant(t *testing.T) {
	for name, occupy := range map[string]func(*world, *apiserver.Request){
		"without an owner": func(w *world, r *apiserver.Request) { w.Occupy(r) },
		"of a controller":  func(w *world, r *apiserver.Request) { w.OccupyByController(r) },
	} {
		inWorld(t, func(w *world) {
			w.write("POST", configMaps, w.ofPod(child))
			others := w.unchanged("")
			occupy(w, w.request("POST", configMaps, w.ofPod(child)))
			others()
			w.pass(time.Hour)
			others()
			w.noted()
		})
		inWorld(t, func(w *world) {
			occupy(w, w.request("POST", configMaps, w.ofPod(child)))
			w.ask("operator", "DELETE", configMaps+"/y", "{}")
			w.equal(name+": the creation", 201, w.write("POST", configMaps, w.ofPod(child)))
			w.pass(time.Hour)
			w.isObject("in the end", "configmaps default/y", `{"a":"2"} annotations{"own":"1"} labels{"app":"1"} finalizers["f.example.com/f"] new UID`)
		})
	}
}

// Only a creation whose name is known can find its name occupied.
func TestOccupyLeaves(t *testing.T) {
	for name, test := range map[string]struct{ method, path, body string }{
		"a generated name": {"POST", configMaps, `{"metadata":{"generateName":"y-"}}`},
		"an update":        {"PUT", configMaps + "/y", `{"metadata":{"name":"y"}}`},
		"a merge patch":    {"PATCH", configMaps + "/y", `{"metadata":{"name":"y"}}`},
		"a deletion":       {"DELETE", configMaps + "/y", `{"metadata":{"name":"y"}}`},
		"no object":        {"POST", configMaps, `[]`},
		"no metadata":      {"POST", configMaps, `{}`},
	} {
		inWorld(t, func(w *world) {
			others := w.unchanged("")
			w.Occupy(w.request(test.method, test.path, test.body))
			w.OccupyByController(w.request(test.method, test.path, test.body))
			w.pass(time.Hour)
			others()
			w.equal(name, "", strings.Join(w.notes, "; "))
		})
	}
}

// What an occupant of a kind keeps of the operator's object is what the server demands.
func TestOccupantsAreUnlikeTheOperators(t *testing.T) {
	const template = `{"metadata":{"labels":{"own":"1"}},"spec":{"containers":[{"name":"main","image":"nginx:1","env":[{"name":"A","value":"b"}]},{"name":"b","image":"c"}]}}`
	const another = `{"metadata":{"labels":{"app":"another"}},"spec":{"containers":[{"image":"another","name":"main"}]}}`
	tests := map[string]struct{ path, content, want string }{
		"Secret":     {"/api/v1/namespaces/default/secrets", `"type":"Opaque","data":{"password":"MQ=="}`, `{"data":{"another":"MQ=="}}`},
		"Service":    {"/api/v1/namespaces/default/services", `"spec":{"clusterIP":"None","selector":{"own":"1"},"ports":[{"port":80,"name":"http"}]}`, `{"spec":{"ports":[{"name":"http","port":80}],"selector":{"app":"another"}}}`},
		"Deployment": {"/apis/apps/v1/namespaces/default/deployments", `"spec":{"replicas":3,"selector":{"matchLabels":{"own":"1"}},"template":` + template + `}`, `{"spec":{"selector":{"matchLabels":{"app":"another"}},"template":` + another + `}}`},
		"Job":        {"/apis/batch/v1/namespaces/default/jobs", `"spec":{"parallelism":2,"template":` + strings.Replace(template, `"spec":{`, `"spec":{"restartPolicy":"Never",`, 1) + `}`, `{"spec":{"template":` + strings.Replace(another, `]}`, `],"restartPolicy":"Never"}`, 1) + `}}`},
		"PersistentVolumeClaim": {"/api/v1/namespaces/default/persistentvolumeclaims", `"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}`,
			`{"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}`},
	}
	for kind, test := range tests {
		inWorld(t, func(w *world) {
			r := w.request("POST", test.path, `{"metadata":{"name":"y","labels":{"own":"1"}},`+test.content+`}`)
			wanted, ok := cluster.CreatedBy(r)
			if !ok || !w.cluster.Accepts(test.path, wanted.Object) {
				t.Fatalf("%s: the operator's object is not valid", kind)
			}
			occupant := (&disguise{cluster: w.cluster, resource: r.Resource, collection: test.path}).of(wanted)
			w.equal(kind+": accepted", true, w.cluster.Accepts(test.path, occupant.Object))
			w.equal(kind+": labels", map[string]string{"app": "another"}, occupant.GetLabels())
			delete(occupant.Object, "metadata")
			text, err := json.Marshal(occupant.Object)
			w.equal(kind, test.want, string(text))
			w.equal(kind+": error", nil, err)
		})
	}
}
