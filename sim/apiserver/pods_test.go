// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ctrlkit/ctrlkit/sim/apiserver"
)

const podsPath = "/api/v1/namespaces/default/pods"

func bindable(t *testing.T) world {
	t.Helper()
	w := newWorld(t)
	w.do("POST", podsPath, `{"metadata":{"name":"p","labels":{"app":"x"}},"spec":{"containers":[{"name":"c","image":"i"}]}}`)
	w.do("POST", podsPath, `{"metadata":{"name":"gated"},"spec":{"schedulingGates":[{"name":"example.com/gate"}],"containers":[{"name":"c","image":"i"}]}}`)
	return w
}

func TestBinding(t *testing.T) {
	w := bindable(t)
	binding := `{"metadata":{"name":"p","annotations":{"a":"1"},"labels":{"zone":"z"}},"target":{"kind":"Node","name":"n"}}`
	if code, answer := w.do("POST", podsPath+"/p/binding?dryRun=All", binding); code != 201 {
		t.Errorf("binding without effect: %d %v", code, answer)
	}
	if code, answer := w.do("POST", podsPath+"/p/binding", binding); code != 201 || answer["status"] != "Success" {
		t.Fatalf("binding: %d %v", code, answer)
	}
	_, pod := w.do("GET", podsPath+"/p", "")
	u := unstructured.Unstructured{Object: pod}
	node, _, _ := unstructured.NestedString(pod, "spec", "nodeName")
	conditions := fmt.Sprint(pod["status"].(map[string]any)["conditions"])
	if node != "n" || u.GetAnnotations()["a"] != "1" || u.GetLabels()["zone"] != "z" || u.GetLabels()["app"] != "x" {
		t.Errorf("the bound Pod is %v", pod)
	}
	if !strings.Contains(conditions, "PodScheduled") || !strings.Contains(conditions, "status:True") {
		t.Errorf("the conditions of the bound Pod are %s", conditions)
	}
	tests := []struct{ path, body, want string }{
		{"p", binding, `409 Operation cannot be fulfilled on pods/binding "p": pod p is already assigned to node "n"`},
		{"gated", `{"metadata":{"name":"gated"},"target":{"name":"n"}}`, "non-empty .spec.schedulingGates"},
		{"gated", `{"metadata":{"name":"gated","uid":"other"},"target":{"name":"n"}}`, "409 Operation cannot be fulfilled on pods \"gated\""},
		{"gated", `{"metadata":{"name":"p"},"target":{"name":"n"}}`, "400 name in URL does not match name in Binding object"},
		{"gated", `{"metadata":{"name":"gated"},"target":{"kind":"Pod"}}`, `500 [target.kind: Unsupported value: "Pod"`},
		{"none", `{"metadata":{"name":"none"},"target":{"name":"n"}}`, `404 pods "none" not found`},
	}
	for _, test := range tests {
		code, answer := w.do("POST", podsPath+"/"+test.path+"/binding", test.body)
		if got := fmt.Sprint(code, " ", answer["message"]); !strings.Contains(got, test.want) {
			t.Errorf("binding %s: %s, want %s", test.path, got, test.want)
		}
	}
}

func TestEviction(t *testing.T) {
	budgets := "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
	evict := func(w world) string {
		code, answer := w.do("POST", podsPath+"/p/eviction", `{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"p"}}`)
		return fmt.Sprint(code, " ", answer["message"], answer["details"])
	}
	running := func() world {
		w := bindable(t)
		w.do("PATCH", podsPath+"/p/status", `{"status":{"phase":"Running"}}`)
		return w
	}

	w := running()
	if got := evict(w); !strings.HasPrefix(got, "201") {
		t.Errorf("evicting a Pod without a budget: %s", got)
	}
	if code, _ := w.do("GET", podsPath+"/p", ""); code != 404 {
		t.Errorf("reading an evicted Pod: %d", code)
	}

	w = running()
	w.do("POST", budgets, `{"metadata":{"name":"b"},"spec":{"minAvailable":1,"selector":{"matchLabels":{"app":"x"}}}}`)
	if got := evict(w); !strings.HasPrefix(got, "429") || !strings.Contains(got, "still being processed") {
		t.Errorf("evicting a Pod whose budget has no status: %s", got)
	}
	status := `{"status":{"observedGeneration":1,"disruptionsAllowed":%d,"currentHealthy":1,"desiredHealthy":1,"expectedPods":1}}`
	w.do("PATCH", budgets+"/b/status", fmt.Sprintf(status, 0))
	if got := evict(w); !strings.HasPrefix(got, "201") {
		t.Errorf("evicting a Pod that is not ready, with enough others: %s", got)
	}

	w = running()
	w.do("PATCH", podsPath+"/p/status", `{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`)
	w.do("POST", budgets, `{"metadata":{"name":"b"},"spec":{"minAvailable":1,"selector":{"matchLabels":{"app":"x"}}}}`)
	w.do("PATCH", budgets+"/b/status", fmt.Sprintf(status, 0))
	if got := evict(w); !strings.HasPrefix(got, "429") || !strings.Contains(got, "needs 1 healthy pods and has 1 currently") {
		t.Errorf("evicting a Pod that is needed: %s", got)
	}
	w.do("PATCH", budgets+"/b/status", fmt.Sprintf(status, 1))
	if got := evict(w); !strings.HasPrefix(got, "201") {
		t.Errorf("evicting a Pod whose budget allows it: %s", got)
	}
	_, budget := w.do("GET", budgets+"/b", "")
	if left, _, _ := unstructured.NestedFloat64(budget, "status", "disruptionsAllowed"); left != 0 {
		t.Errorf("%v disruptions are still allowed", left)
	}
}

// As upstream, watches see that a Pod is being deleted before it is gone, even if nothing holds it.
func TestPodsAreMarkedBeforeTheyGo(t *testing.T) {
	configs := "/api/v1/namespaces/default/configmaps"
	for _, c := range []struct {
		name, path, node string
		deletions        []string
		want             string
	}{
		{"an unbound Pod", podsPath, "", []string{`{}`}, "ADDED 1 <nil>, MODIFIED 2 0, DELETED 2 0"},
		{"of many", podsPath, "", nil, "ADDED 1 <nil>, MODIFIED 2 0, DELETED 2 0"},
		{"a bound Pod", podsPath, "n", []string{`{}`, `{}`, `{"gracePeriodSeconds":0}`}, "ADDED 1 <nil>, MODIFIED 2 30, MODIFIED 2 0, DELETED 2 0"},
		{"sooner", podsPath, "n", []string{`{"gracePeriodSeconds":60}`, `{}`, `{"gracePeriodSeconds":-5}`}, "ADDED 1 <nil>, MODIFIED 2 60, MODIFIED 2 1"},
		{"another kind", configs, "", []string{`{}`}, "ADDED <nil> <nil>, DELETED <nil> <nil>"},
	} {
		w := newWorld(t)
		r, err := apiserver.NewRequest("GET", c.path+"?watch=true", "", nil)
		must(t, err)
		watch, refused := w.Watch(r)
		if refused != nil {
			t.Fatalf("%s", refused.Body)
		}
		w.do("POST", c.path, `{"metadata":{"name":"x"}`+map[bool]string{true: `,"spec":{"nodeName":"` + c.node + `","containers":[{"name":"c","image":"i"}]}`}[c.path == podsPath]+`}`)
		for _, options := range c.deletions {
			if code, answer := w.do("DELETE", c.path+"/x", options); code != 200 {
				t.Errorf("%s: %d %v", c.name, code, answer)
			}
		}
		if c.deletions == nil {
			w.do("DELETE", c.path, `{}`)
		}
		var got []string
		for e, ok := watch.Next(); ok; e, ok = watch.Next() {
			var object map[string]any
			must(t, json.Unmarshal(e.Object, &object))
			m := object["metadata"].(map[string]any)
			got = append(got, fmt.Sprint(e.Type, " ", m["generation"], " ", m["deletionGracePeriodSeconds"]))
		}
		watch.Stop()
		if got := strings.Join(got, ", "); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// A write of the status changes the owners of objects, but not those of Pods.
func TestOwnersInStatus(t *testing.T) {
	w := newWorld(t)
	uid := w.create("owner", "")
	w.do("POST", podsPath, `{"metadata":{"name":"x"},"spec":{"containers":[{"name":"c","image":"i"}]}}`)
	claims := "/api/v1/namespaces/default/persistentvolumeclaims"
	w.do("POST", claims, `{"metadata":{"name":"x"},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}`)
	for path, want := range map[string]int{podsPath: 0, claims: 1} {
		code, answer := w.do("PATCH", path+"/x/status", `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"owner","uid":"`+uid+`"}]}}`)
		u := unstructured.Unstructured{Object: answer}
		if code != 200 || len(u.GetOwnerReferences()) != want {
			t.Errorf("%s: %d, %d owners, want %d", path, code, len(u.GetOwnerReferences()), want)
		}
	}
}
