// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/external"
	"github.com/ctrlkit/ctrlkit/internal/orphans"
	"github.com/ctrlkit/ctrlkit/internal/testkind"
)

// A catalog imports the resources of a store.
type catalog struct {
	storeClient
	gone string // deleted after it was listed
	fail error
}

func (c catalog) List(context.Context) (all []external.Resource, err error) {
	for _, id := range c.ids() {
		all = append(all, external.Resource{ID: id, Owner: c.all[id].owner})
	}
	return append(all, all...), c.fail // some systems list one twice
}

func (c catalog) Import(ctx context.Context, r external.Resource) (*Silo, error) {
	if r.ID == c.gone {
		delete(c.all, r.ID)
	}
	obj := &Silo{ObjectMeta: metav1.ObjectMeta{Name: strings.ToLower(r.ID), Labels: map[string]string{"size": "none"}}}
	if err := external.Describe(ctx, c, obj, r.ID); err != nil {
		return nil, err
	}
	obj.Spec.Size = c.all[r.ID].size
	obj.Labels["size"] = obj.Spec.Size
	return obj, nil
}

// What exists becomes objects that adopt it. Nothing is changed outside, but that the owner is stored
// where the system is known to store owners.
func TestImport(t *testing.T) {
	for name, marks := range map[string]bool{"no owners are known": false, "a neighbour has one": true} {
		eachIdentityOf(t, name+", ", func(t *testing.T, d *siloDesk) { imports(t, d, marks) })
	}
}

func imports(t *testing.T, d *siloDesk, marks bool) {
	for i := range 10 {
		id := fmt.Sprintf("S%d", i)
		d.store.all[id] = &stored{id: id, size: []string{"small", "huge"}[i%2]}
	}
	d.store.all["theirs"] = &stored{id: "theirs", owner: "another", size: "huge"}
	d.store.all["taken"] = &stored{id: "taken", size: "huge"}
	d.store.all["former"] = &stored{id: "former", owner: "former-uid", size: "huge"}
	names(d, "taken")
	if marks {
		d.store.all["taken"].owner = external.OwnerOf(d.get())
		d.passes()
	}
	system := catalog{storeClient: storeClient{d.store}, gone: "S7"}
	objects := func(ctx context.Context) ([]*Silo, error) { return []*Silo{d.get()}, nil }
	all, err := external.Import(t.Context(), system, objects, nil)
	if err != nil || len(all) != 9 {
		t.Fatalf("%d objects, error %v", len(all), err)
	}
	d.store.take()
	before := len(d.store.all)
	for _, obj := range all {
		obj.Namespace = "default"
		d.must(d.client.Create(t.Context(), obj))
		for range 3 {
			_, err := d.reconcileOne(client.ObjectKeyFromObject(obj))
			d.must(err)
		}
		now := &Silo{}
		d.must(d.client.Get(t.Context(), client.ObjectKeyFromObject(obj), now))
		if strings.ToUpper(obj.Name) != external.IDOf(now) || !meta.IsStatusConditionTrue(now.Status.Conditions, "Ready") {
			t.Errorf("%s has the id %s, and conditions %v", obj.Name, external.IDOf(now), now.Status.Conditions)
		}
	}
	calls := d.store.take()
	updates := strings.Count(calls, "update")
	if strings.Count(calls, "observe")+updates+strings.Count(calls, "find") != len(strings.Fields(calls)) || updates != len(all) || len(d.store.all) != before {
		t.Errorf("%d updates, calls %.200s", updates, strings.ReplaceAll(calls, "observe ", ""))
	}
	if again, err := external.Import(t.Context(), system, func(context.Context) ([]*Silo, error) { return allSilos(d), nil }, nil); err != nil || len(again) != 0 {
		t.Errorf("%d more, error %v", len(again), err)
	}
	found, err := external.Audit(t.Context(), system, func(context.Context) ([]*Silo, error) { return allSilos(d), nil })
	if err != nil || len(found.Missing) != 0 || len(found.Orphans) != 2 {
		t.Errorf("orphans %v, missing %d, error %v", found.Orphans, len(found.Missing), err)
	}
}

// allSilos returns all Silos.
func allSilos(d *siloDesk) (all []*Silo) {
	list := &testkind.List[SiloSpec, SiloStatus]{}
	d.must(d.client.List(d.t.Context(), list))
	for i := range list.Items {
		all = append(all, &list.Items[i])
	}
	return all
}

func TestImportFails(t *testing.T) {
	inDesk(t, byName(), func(t *testing.T, d *siloDesk) {
		for _, id := range []string{"a", "A", "b", "$c"} {
			d.store.all[id] = &stored{id: id, size: "small"}
		}
		objects := func(context.Context) ([]*Silo, error) { return nil, nil }
		all, err := external.Import(t.Context(), catalog{storeClient: storeClient{d.store}}, objects, nil)
		if len(all) != 2 || err == nil || !strings.Contains(err.Error(), `a: its object is to be named "a", as that of "A"`) || !strings.Contains(err.Error(), `$c: its object can't have the name "$c"`) {
			t.Errorf("%d objects, error %v", len(all), err)
		}
		d.store.seen = func(o *external.Observation) { o.Owner = "another" } // which the list does not have
		if all, err = external.Import(t.Context(), catalog{storeClient: storeClient{d.store}}, objects, nil); len(all) != 0 || err != nil {
			t.Errorf("%d objects that have an owner, error %v", len(all), err)
		}
		d.store.seen, d.store.fail = nil, failing("observe", errors.New("connection refused"))
		if all, err = external.Import(t.Context(), catalog{storeClient: storeClient{d.store}}, objects, nil); len(all) != 0 || !strings.Contains(err.Error(), "connection refused") {
			t.Errorf("%d objects, error %v", len(all), err)
		}
		if _, err = external.Import(t.Context(), catalog{storeClient: storeClient{d.store}, fail: errors.New("no list")}, objects, nil); err == nil {
			t.Error("a list that fails is taken for one that is whole")
		}
	})
}

func TestServeImports(t *testing.T) {
	inDesk(t, byName(), func(t *testing.T, d *siloDesk) {
		for _, id := range []string{"a1", "a2", "b1"} { // globs have no classes, and ids may be paths
			d.store.all[id] = &stored{id: id, size: map[bool]string{true: "huge", false: "small"}[id == "a2"]}
		}
		objects := func(context.Context) ([]*Silo, error) { return nil, nil }
		mgr := &servingManager{client: d.client}
		if err := external.ServeImports(mgr, func(context.Context) ([]external.SystemImport, error) {
			return []external.SystemImport{
				external.ImportOf("store", catalog{storeClient: storeClient{d.store}}, objects),
				external.ImportOf("dead", catalog{storeClient: storeClient{d.store}, fail: errors.New("connection refused")}, objects),
			}, nil
		}); err != nil || mgr.path != external.ImportPath {
			t.Fatalf("served at %q, error %v", mgr.path, err)
		}
		ask := func(query url.Values) (code int, names string) {
			answer := httptest.NewRecorder()
			mgr.handler.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, external.ImportPath+"?"+query.Encode(), nil))
			var got orphans.Imports
			if answer.Code != http.StatusOK {
				return answer.Code, answer.Body.String()
			}
			d.must(json.Unmarshal(answer.Body.Bytes(), &got))
			for _, obj := range got.Systems[0].Objects {
				metadata := obj["metadata"].(map[string]any)
				names += fmt.Sprintf("%s/%s ", metadata["namespace"], metadata["name"])
				if obj["kind"] != "Silo" || obj["status"] != nil {
					t.Errorf("manifest %v", obj)
				}
			}
			if err := got.Err(); err == nil || err.Error() != "not all can be imported: dead: listing the resources: connection refused" {
				t.Errorf("error %v", err)
			}
			return answer.Code, names
		}
		for query, want := range map[string]string{
			"namespace=shop": "shop/a1 shop/a2 shop/b1 ", "namespace=shop&name=a*": "shop/a1 shop/a2 ", "namespace=shop&name=?1": "shop/a1 shop/b1 ", "namespace=shop&name=[a]1": "", "namespace=shop&name=b1": "shop/b1 ", "namespace=shop&selector=size!=huge": "shop/a1 shop/b1 ",
		} {
			values, _ := url.ParseQuery(query)
			if code, got := ask(values); code != http.StatusOK || got != want {
				t.Errorf("%s: %d %s, want %s", query, code, got, want)
			}
		}
		if code, text := ask(url.Values{"selector": {"size in"}}); code != http.StatusBadRequest {
			t.Errorf("%d %s", code, text)
		}
	})
}
