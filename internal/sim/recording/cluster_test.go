// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package recording_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/rest"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/internal/sim/recording"
)

// shopServer is an API server with an application in the namespace shop, and what has nothing to do
// with it.
func shopServer(t *testing.T) *apiserver.Server {
	t.Helper()
	server := apiserver.New(apiserver.Options{})
	revision := 0
	add := func(apiVersion, kind, namespace, name, owner, rest string) {
		revision++
		owners := ""
		if owner != "" {
			ownerKind, ownerName, _ := strings.Cut(owner, "/")
			owners = fmt.Sprintf(`, "ownerReferences": [{"apiVersion": "v1", "kind": %q, "name": %q, "uid": %q}]`, ownerKind, ownerName, ownerName)
		}
		ns := ""
		if namespace != "" {
			ns = fmt.Sprintf(`, "namespace": %q`, namespace)
		}
		uid := strings.TrimPrefix("uid-"+namespace+"-"+name, "uid-shop-")
		must(t, server.Import(parse(t, fmt.Sprintf(`{"apiVersion": %q, "kind": %q, "metadata": {"name": %q, "uid": %q, "resourceVersion": "%d"%s%s}%s}`,
			apiVersion, kind, name, uid, revision, ns, owners, rest))))
	}
	for _, ns := range []string{"shop", "other", "third"} {
		add("v1", "Namespace", "", ns, "", "")
	}
	add("v1", "ConfigMap", "shop", "top", "", `, "data": {"x": "y"}`)
	add("apps/v1", "Deployment", "shop", "web", "ConfigMap/top", `, "spec": {"template": {"spec": {
		"serviceAccountName": "runner", "containers": [{"name": "c", "image": "sibling", "env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "password", "key": "a"}}}]}],
		"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "files"}}]}}}`)
	add("apps/v1", "ReplicaSet", "shop", "web-1", "Deployment/web", "")
	add("v1", "Pod", "shop", "web-1-a", "ReplicaSet/web-1", `, "spec": {"nodeName": "node-1"}`)
	add("v1", "ServiceAccount", "shop", "runner", "", "")
	add("v1", "PersistentVolumeClaim", "shop", "files", "", `, "spec": {"volumeName": "volume-1"}`)
	add("v1", "PersistentVolume", "", "volume-1", "", "")
	add("v1", "Node", "", "node-1", "", "")
	add("v1", "Node", "", "node-2", "", "")
	add("v1", "Secret", "shop", "password", "", `, "data": {"a": "aHVudGVyMjI="}`)
	add("v1", "Secret", "shop", "unused", "", "")
	add("v1", "Secret", "other", "password", "", "")
	add("v1", "Service", "shop", "sibling", "ConfigMap/top", "")
	add("rbac.authorization.k8s.io/v1", "RoleBinding", "shop", "binding", "",
		`, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "role"}, "subjects": [{"kind": "ServiceAccount", "name": "robot", "namespace": "other"}]`)
	add("rbac.authorization.k8s.io/v1", "Role", "shop", "role", "", "")
	add("v1", "ServiceAccount", "other", "robot", "", "")
	add("v1", "ConfigMap", "third", "alone", "", `, "data": {"x": "robot"}`)
	return server
}

func resourceOf(group, version, resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: group, Version: version, Resource: resource}
}

// What is named is recorded with what it owns, is owned by and refers to, and nothing else.
func TestCollect(t *testing.T) {
	server := shopServer(t)
	web := recording.Wanted{Resource: resourceOf("apps", "v1", "deployments"), Namespace: "shop", Name: "web"}
	shop := []string{"Namespace shop"}
	ofWeb := append([]string{
		"ConfigMap shop/top", "Deployment shop/web", "Node node-1", "PersistentVolume volume-1", "PersistentVolumeClaim shop/files", "Pod shop/web-1-a",
		"ReplicaSet shop/web-1", "Secret shop/password", "ServiceAccount shop/runner",
	}, shop...)
	for name, test := range map[string]struct {
		request recording.Request
		want    []string
	}{
		"a Deployment": {recording.Request{Objects: []recording.Wanted{web}}, ofWeb},
		"its owner":    {recording.Request{Objects: []recording.Wanted{{Resource: resourceOf("", "v1", "configmaps"), Namespace: "shop", Name: "top"}}}, append(ofWeb, "Service shop/sibling")},
		"a reference to another namespace": {recording.Request{Objects: []recording.Wanted{{Resource: resourceOf("rbac.authorization.k8s.io", "v1", "rolebindings"), Namespace: "shop", Name: "binding"}}}, append([]string{
			"RoleBinding shop/binding", "Role shop/role", "ServiceAccount other/robot", "Namespace other",
		}, shop...)},
		"a kind":                {recording.Request{Kinds: []schema.GroupKind{{Kind: "Secret"}}}, append([]string{"Secret shop/password", "Secret shop/unused", "Secret other/password", "Namespace other"}, shop...)},
		"a kind of a namespace": {recording.Request{Kinds: []schema.GroupKind{{Kind: "Secret"}}, Namespace: "other"}, []string{"Secret other/password", "Namespace other"}},
		"a namespace":           {recording.Request{Namespace: "third"}, []string{"ConfigMap third/alone", "Namespace third"}},
	} {
		r, secrets, err := recording.Collect(t.Context(), server.Config(), test.request)
		must(t, err)
		var got []string
		for _, obj := range r.Objects {
			got = append(got, recording.SubjectOf(obj).String())
		}
		slices.Sort(got)
		if diff := cmp.Diff(slices.Sorted(slices.Values(test.want)), got); diff != "" || len(r.Unread) > 0 {
			t.Errorf("%s: -want +got:\n%s\nunread: %v", name, diff, r.Unread)
		}
		for _, s := range secrets {
			got = append(got, recording.SubjectOf(s).String())
		}
		for _, want := range []string{"Secret shop/password", "Secret shop/unused", "Secret other/password"} {
			if !slices.Contains(got, want) && name != "a namespace" && name != "a kind of a namespace" {
				t.Errorf("%s: the values of %s are not known", name, want)
			}
		}
	}
	if _, _, err := recording.Collect(t.Context(), server.Config(), recording.Request{Objects: []recording.Wanted{{Resource: web.Resource, Namespace: "shop", Name: "nothing"}}}); err == nil {
		t.Error("an object that does not exist is recorded")
	}
}

// refusing refuses to list a resource.
type refusing struct {
	http.RoundTripper
	path string
}

func (r refusing) RoundTrip(request *http.Request) (*http.Response, error) {
	if strings.HasSuffix(request.URL.Path, r.path) {
		body := `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"not for you"}`
		return &http.Response{StatusCode: http.StatusForbidden, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), Request: request}, nil
	}
	return r.RoundTripper.RoundTrip(request)
}

// What may not be read is named, and what an unread object owns does not look as if its owner were
// gone.
func TestCollectNamesWhatItMayNotRead(t *testing.T) {
	web := recording.Wanted{Resource: resourceOf("apps", "v1", "deployments"), Namespace: "shop", Name: "web"}
	for path, want := range map[string][]string{
		"/namespaces/shop/configmaps": {"configmaps: not for you", "owner ConfigMap top of Deployment shop/web: the reference to it is left out"},
		"/api/v1/secrets":             {"secrets of all namespaces: copies of their values in recorded objects would not be found: not for you"},
	} {
		config := shopServer(t).Config()
		config = rest.CopyConfig(config)
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return refusing{next, path} })
		r, secrets, err := recording.Collect(t.Context(), config, recording.Request{Objects: []recording.Wanted{web}})
		must(t, err)
		if diff := cmp.Diff(want, r.Unread); diff != "" {
			t.Errorf("%s is refused: -want +got:\n%s", path, diff)
		}
		if owners := r.Find(r.Subjects[0]).GetOwnerReferences(); (len(owners) == 0) != strings.HasSuffix(path, "configmaps") {
			t.Errorf("%s is refused: the owners are %v", path, owners)
		}
		if len(secrets) == 0 {
			t.Errorf("%s is refused: no other Secrets are known", path)
		}
	}
}

// A kind that no replay can have is left out, and named.
func TestCollectLeavesOutWhatNoReplayHas(t *testing.T) {
	r, _, err := recording.Collect(t.Context(), shopServer(t).Config(), recording.Request{Namespace: "third", Serves: func(gvk schema.GroupVersionKind) bool { return gvk.Kind != "ConfigMap" }})
	must(t, err)
	if len(r.Objects) != 1 || len(r.Unread) != 1 || r.Unread[0] != "ConfigMap: no replay can have this kind: it has no definition" {
		t.Errorf("%d objects, unread %v", len(r.Objects), r.Unread)
	}
}

func parse(t *testing.T, text string) map[string]any {
	t.Helper()
	var content map[string]any
	must(t, utiljson.Unmarshal([]byte(text), &content))
	return content
}
