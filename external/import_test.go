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
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/external"
	"github.com/ctrlkit/ctrlkit/internal/cluster/testkind"
	"github.com/ctrlkit/ctrlkit/internal/engine/orphans"
)

// A catalog imports the resources of a store.
type catalog struct {
	storeClient
	gone string // deleted after it was listed
	fail error
	slow time.Duration // how long it takes to read one
}

func (c catalog) List(context.Context) (all []external.Resource, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range c.ids() {
		all = append(all, external.Resource{ID: id, Owner: c.all[id].owner})
	}
	return append(all, all...), c.fail // some systems list one twice
}

func (c catalog) Import(ctx context.Context, r external.Resource) (*Silo, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(c.slow):
	}
	c.importing.Lock()
	defer c.importing.Unlock()
	if r.ID == c.gone {
		c.mu.Lock()
		delete(c.all, r.ID)
		c.mu.Unlock()
	}
	obj := &Silo{ObjectMeta: metav1.ObjectMeta{Name: strings.ToLower(r.ID), Labels: map[string]string{"size": "none"}}}
	if err := external.Describe(ctx, c, obj, r.ID); err != nil {
		return nil, err
	}
	c.mu.Lock()
	obj.Spec.Size = c.all[r.ID].size
	c.mu.Unlock()
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
	objects := func(ctx context.Context) ([]external.Holder, error) { return []external.Holder{{Object: d.get()}}, nil }
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
	if again, err := external.Import(t.Context(), system, func(context.Context) ([]external.Holder, error) { return allSilos(d), nil }, nil); err != nil || len(again) != 0 {
		t.Errorf("%d more, error %v", len(again), err)
	}
	unowned, missing, err := external.Audit(t.Context(), system, func(context.Context) ([]external.Holder, error) { return allSilos(d), nil })
	if err != nil || len(missing) != 0 || len(unowned) != 2 {
		t.Errorf("orphans %v, missing %d, error %v", unowned, len(missing), err)
	}
}

// allSilos returns all Silos.
func allSilos(d *siloDesk) (all []external.Holder) {
	list := &testkind.List[SiloSpec, SiloStatus]{}
	d.must(d.client.List(d.t.Context(), list))
	for i := range list.Items {
		all = append(all, external.Holder{Object: &list.Items[i]})
	}
	return all
}

func TestImportFails(t *testing.T) {
	inDesk(t, byName(), func(t *testing.T, d *siloDesk) {
		for _, id := range []string{"a", "A", "b", "$c"} {
			d.store.all[id] = &stored{id: id, size: "small"}
		}
		objects := func(context.Context) ([]external.Holder, error) { return nil, nil }
		all, err := external.Import(t.Context(), catalog{storeClient: storeClient{d.store}}, objects, nil)
		if len(all) != 3 || all[0].Name != "a" || all[1].Name != "a-1ac10c60" || all[2].Name != "b" || err == nil || !strings.HasPrefix(err.Error(), `$c: its object can't have the name "$c"`) {
			t.Errorf("%d objects, error %v", len(all), err)
		}
		d.store.seen = func(o *external.Observation) { o.Owner = "another" } // which the list does not have
		if all, err = external.Import(t.Context(), catalog{storeClient: storeClient{d.store}}, objects, nil); len(all) != 0 || err != nil {
			t.Errorf("%d objects that have an owner, error %v", len(all), err)
		}
		refused := errors.New("connection refused")
		d.store.seen, d.store.fail = nil, failing("observe", refused)
		all, err = external.Import(t.Context(), catalog{storeClient: storeClient{d.store}}, objects, nil)
		if want := "$c, A, a and 1 others: connection refused"; len(all) != 0 || !errors.Is(err, refused) || err.Error() != want {
			t.Errorf("%d objects, error %v, want %s", len(all), err, want)
		}
		d.store.fail = func(string) error { panic("a bug") }
		if all, err = external.Import(t.Context(), catalog{storeClient: storeClient{d.store}}, objects, nil); len(all) != 0 || err == nil || !strings.Contains(err.Error(), "panic: a bug") {
			t.Errorf("%d objects, error %v", len(all), err)
		}
		if _, err = external.Import(t.Context(), catalog{storeClient: storeClient{d.store}, fail: errors.New("no list")}, objects, nil); err == nil {
			t.Error("a list that fails is taken for one that is whole")
		}
	})
}

// Many resources are read at the same time, within the limits of the system, and what fails is one line.
func TestImportOfMany(t *testing.T) {
	none := func(context.Context) ([]external.Holder, error) { return nil, nil }
	for name, tt := range map[string]struct {
		calls external.Calls[*Silo]
		slow  time.Duration
		fail  error
		takes time.Duration
		found int
		want  string
	}{
		"without a limit":  {slow: 50 * time.Millisecond, takes: 10 * time.Second, found: 2000, want: "^$"},
		"with a limit":     {calls: external.Calls[*Silo]{PerSecond: 100, Burst: 5}, slow: 50 * time.Millisecond, takes: 20 * time.Second, found: 2000, want: "^$"},
		"all calls hang":   {calls: external.Calls[*Silo]{Deadline: 5 * time.Second}, slow: time.Hour, takes: 10 * time.Second, want: `^s0000, s0001, s0002 and \d+ others: context deadline exceeded; s00\d\d, s00\d\d, s00\d\d and \d+ others: not read, because 5 calls in a row were not answered$`},
		"all calls fail":   {fail: errors.New("no permission"), want: "^s0000, s0001, s0002 and 1997 others: no permission$"},
		"fewer are wanted": {calls: external.Calls[*Silo]{PerSecond: 1000}, fail: errors.New("429 Too Many Requests"), takes: 2 * time.Minute, want: `^s0000, s0001, s0002 and \d+ others: 429 Too Many Requests; .* not read, because 5 calls in a row were not answered$`},
	} {
		onDesk(t, name, byName(), func(t *testing.T, d *siloDesk) {
			for i := range 2000 {
				id := fmt.Sprintf("s%04d", i)
				d.store.all[id] = &stored{id: id, size: "small"}
			}
			if tt.fail != nil {
				d.store.fail = failing("observe", tt.fail)
			}
			mgr := &servingManager{client: d.client}
			d.must(external.ServeImports(mgr, func(context.Context) ([]external.SystemImport, error) {
				return []external.SystemImport{external.ImportOf("store", catalog{storeClient: storeClient{d.store}, slow: tt.slow}, none, tt.calls)}, nil
			}))
			began, answer := time.Now(), httptest.NewRecorder()
			mgr.handler.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, orphans.ImportPath+"?namespace=shop", nil))
			took, got, seconds := time.Since(began), orphans.Imports{}, 0
			for decoder := json.NewDecoder(answer.Body); got.Systems == nil; seconds++ {
				d.must(decoder.Decode(&got))
			}
			if took > tt.takes+time.Second || len(got.Systems[0].Objects) != tt.found || !regexp.MustCompile(tt.want).MatchString(got.Systems[0].Error) {
				t.Errorf("%d objects in %v, error %q, want %q", len(got.Systems[0].Objects), took, got.Systems[0].Error, tt.want)
			}
			if late := int(took/time.Second) - seconds; late > 1 || tt.found > 0 && (got.Progress == nil || got.Progress.Of != 2000) {
				t.Errorf("%d answers in %v, the last progress is %v", seconds, took, got.Progress)
			}
		})
	}
}

// The reconciles and the imports of a system are limited together.
func TestImportSharesLimits(t *testing.T) {
	inDesk(t, byName(), func(t *testing.T, d *siloDesk) {
		d.options.Calls = external.Calls[*Silo]{PerSecond: 1, System: func(*Silo) string { return "store" }}.Shared()
		d.restart()
		for i := range 30 {
			id := fmt.Sprintf("s%04d", i)
			d.store.all[id] = &stored{id: id, size: "small"}
		}
		var systems []external.SystemImport
		for _, name := range []string{"another", "store"} {
			systems = append(systems, external.ImportOf(name, catalog{storeClient: storeClient{d.store}}, func(context.Context) ([]external.Holder, error) { return nil, nil }, d.options.Calls))
		}
		mgr := &servingManager{client: d.client}
		d.must(external.ServeImports(mgr, func(context.Context) ([]external.SystemImport, error) { return systems, nil }))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			mgr.handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, orphans.ImportPath, nil))
		}()
		time.Sleep(2500 * time.Millisecond)
		began := time.Now()
		_, _ = d.reconcile()
		if took := time.Since(began); len(d.store.all) != 31 || took < 4*time.Second || took > 7*time.Second { // by turns
			t.Errorf("a reconcile of three calls took %v", took)
		}
		cancel() // the user does not wait any more
		before := time.Now()
		if <-ended; time.Since(before) > time.Second {
			t.Errorf("the import has ended %v after its user", time.Since(before))
		}
	})
}

// Ids are unique in a scope only: an account, say.
func TestScopes(t *testing.T) {
	object := func(name, id, scope string) external.Holder {
		obj := &Silo{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("uid of " + name), Annotations: map[string]string{external.IDAnnotation: id}}}
		return external.Holder{Object: obj, Scope: scope}
	}
	system := scopes{listing{all: []external.Resource{
		{ID: "ORDERS", Scope: "shop"}, {ID: "ORDERS", Scope: "blog"}, {ID: "ORDERS"},
		{ID: "TAKEN", Scope: "shop", Owner: "uid of taken"}, {ID: "TAKEN", Scope: "blog"},
		{ID: "LOST", Scope: "blog", Owner: "uid of kept"}, {ID: "KEPT", Scope: "blog", Owner: "uid of kept"}, {ID: "KEPT", Scope: "shop", Owner: "uid of kept"},
	}}}
	objects := func(context.Context) ([]external.Holder, error) {
		return []external.Holder{object("taken", "TAKEN", "shop"), object("lost", "LOST", "shop"), object("kept", "KEPT", "blog"), object("orders", "X", "shop")}, nil
	}
	all, err := external.Import(t.Context(), system, objects, nil)
	var got []string
	for _, obj := range all {
		got = append(got, obj.Name+" "+obj.Spec.Region+" "+external.IDOf(obj))
	}
	want := []string{"orders-b4034296  ORDERS", "orders-a465935b blog ORDERS", "taken-d778c66f blog TAKEN", "orders-fba4cc07 shop ORDERS"}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("error %v (-want +got):\n%s", err, diff)
	}
	unowned, missing, err := external.Audit(t.Context(), system, objects)
	if err != nil || len(missing) != 2 || missing[0].GetName() != "lost" {
		t.Errorf("missing %v, error %v", missing, err)
	}
	if diff := cmp.Diff([]external.Resource{{ID: "LOST", Scope: "blog", Owner: "uid of kept"}, {ID: "KEPT", Scope: "shop", Owner: "uid of kept"}}, unowned); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// scopes imports what it lists.
type scopes struct{ listing }

func (scopes) Import(_ context.Context, r external.Resource) (*Silo, error) {
	return &Silo{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: strings.ToLower(r.ID)}, Spec: SiloSpec{Region: r.Scope}}, nil
}

// tagged lists the labels of what it imports, but for one.
type tagged struct{ catalog }

func (c tagged) List(context.Context) ([]external.Resource, error) {
	return []external.Resource{
		{ID: "a1", Labels: map[string]string{"team": "web"}}, {ID: "a2", Labels: map[string]string{"team": "db"}},
		{ID: "b1", Labels: map[string]string{}}, {ID: "b2"},
	}, nil
}

// Only what is selected is read, where the labels are known before.
func TestImportSelects(t *testing.T) {
	for query, want := range map[string]struct {
		reads int
		names string
	}{
		"": {4, "a1 a2 b1 b2"}, "selector=team=web": {2, "a1"}, "selector=team": {3, "a1 a2"}, "selector=!team": {2, "b1 b2"},
		"name=a*": {2, "a1 a2"}, "name=a?,b2": {3, "a1 a2 b2"}, "name=a*&selector=team=db": {1, "a2"}, "name=%ff": {0, ""}, `name=a\*`: {0, ""},
	} {
		onDesk(t, query, byName(), func(t *testing.T, d *siloDesk) {
			for _, id := range []string{"a1", "a2", "b1", "b2"} {
				d.store.all[id] = &stored{id: id, size: "small"}
			}
			mgr := &servingManager{client: d.client}
			d.must(external.ServeImports(mgr, func(context.Context) ([]external.SystemImport, error) {
				return []external.SystemImport{external.ImportOf("store", tagged{catalog{storeClient: storeClient{d.store}}}, func(context.Context) ([]external.Holder, error) { return nil, nil }, external.Calls[*Silo]{})}, nil
			}))
			values, err := url.ParseQuery(query)
			d.must(err)
			code, got := askImports(t, mgr, values)
			if names := namesOf(got.Systems[0].Objects); code != http.StatusOK || names != want.names || len(d.store.calls) != want.reads {
				t.Errorf("code %d, %s, calls %v, want %v", code, names, d.store.calls, want)
			}
		})
	}
}

// askImports asks for what can be imported.
func askImports(t *testing.T, mgr *servingManager, query url.Values) (code int, got orphans.Imports) {
	answer := httptest.NewRecorder()
	mgr.handler.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, orphans.ImportPath+"?"+query.Encode(), nil))
	if answer.Code != http.StatusOK {
		return answer.Code, orphans.Imports{Systems: []orphans.Import{{Error: answer.Body.String()}}}
	}
	if err := json.Unmarshal(answer.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	return answer.Code, got
}

// namesOf returns the names of manifests.
func namesOf(all []map[string]any) string {
	var names []string
	for _, obj := range all {
		names = append(names, obj["metadata"].(map[string]any)["name"].(string))
	}
	return strings.Join(names, " ")
}

// No manifest has the name of another one, of any system, or of an object that exists.
func TestImportedNames(t *testing.T) {
	inDesk(t, byName(), func(t *testing.T, d *siloDesk) {
		long := strings.Repeat("x", 253)
		for _, id := range []string{"logs", "orders", long} {
			d.store.all[id] = &stored{id: id, size: "small"}
		}
		var systems []external.SystemImport
		for _, name := range []string{"two", "one"} {
			systems = append(systems, external.ImportOf(name, catalog{storeClient: storeClient{d.store}}, func(context.Context) ([]external.Holder, error) { return nil, nil }, external.Calls[*Silo]{}))
		}
		mgr := &servingManager{client: d.client}
		d.must(external.ServeImports(mgr, func(context.Context) ([]external.SystemImport, error) { return systems, nil }))
		for namespace, want := range map[string]string{ // d has default/logs
			"default": "one: logs-4f227e9e orders " + long + " two: logs-b2bbfdac orders-6799b4f0 " + long[:244] + "-5712bea1 ",
			"shop":    "one: logs orders " + long + " two: logs-b2bbfdac orders-6799b4f0 " + long[:244] + "-5712bea1 ",
		} {
			_, got := askImports(t, mgr, url.Values{"namespace": {namespace}})
			text := ""
			for _, system := range got.Systems {
				text += system.Name + ": " + namesOf(system.Objects) + " "
			}
			if text != want || got.Err() != nil {
				t.Errorf("%s: %s, want %s, error %v", namespace, text, want, got.Err())
			}
			if want := []orphans.Adoption{{Namespace: namespace, Patterns: []string{"logs", "orders", long}}}; !cmp.Equal(want, got.Adoptions) {
				t.Errorf("adoptions %v", got.Adoptions)
			}
		}
	})
}

func TestServeImports(t *testing.T) {
	inDesk(t, byName(), func(t *testing.T, d *siloDesk) {
		for _, id := range []string{"a1", "a2", "b1"} { // globs have no classes, and ids may be paths
			d.store.all[id] = &stored{id: id, size: map[bool]string{true: "huge", false: "small"}[id == "a2"]}
		}
		objects := func(context.Context) ([]external.Holder, error) { return nil, nil }
		mgr := &servingManager{client: d.client}
		if err := external.ServeImports(mgr, func(context.Context) ([]external.SystemImport, error) {
			return []external.SystemImport{
				external.ImportOf("store", catalog{storeClient: storeClient{d.store}}, objects, external.Calls[*Silo]{}),
				external.ImportOf("dead", catalog{storeClient: storeClient{d.store}, fail: errors.New("connection refused")}, objects, external.Calls[*Silo]{}),
			}, nil
		}); err != nil || mgr.path != orphans.ImportPath {
			t.Fatalf("served at %q, error %v", mgr.path, err)
		}
		ask := func(query url.Values) (code int, names string) {
			code, got := askImports(t, mgr, query)
			if code != http.StatusOK {
				return code, got.Systems[0].Error
			}
			for _, obj := range got.Systems[1].Objects {
				metadata := obj["metadata"].(map[string]any)
				names += fmt.Sprintf("%s/%s ", metadata["namespace"], metadata["name"])
				if obj["kind"] != "Silo" || obj["status"] != nil {
					t.Errorf("manifest %v", obj)
				}
			}
			if err := got.Err(); err == nil || err.Error() != "not all can be imported: dead: listing the resources: connection refused" {
				t.Errorf("error %v", err)
			}
			return code, names
		}
		for query, want := range map[string]string{
			"namespace=shop": "shop/a1 shop/a2 shop/b1 ", "namespace=shop&name=a*": "shop/a1 shop/a2 ", "namespace=shop&name=?1": "shop/a1 shop/b1 ", "namespace=shop&name=[a]1": "", "namespace=shop&name=b1": "shop/b1 ", "namespace=shop&selector=size!=huge": "shop/a1 shop/b1 ",
		} {
			values, _ := url.ParseQuery(query)
			if code, got := ask(values); code != http.StatusOK || got != want {
				t.Errorf("%s: %d %s, want %s", query, code, got, want)
			}
		}
		for _, wrong := range []url.Values{{"selector": {"size in"}}, {"namespace": {"no such/name"}}} {
			if code, text := ask(wrong); code != http.StatusBadRequest || !strings.HasPrefix(text, "wrong question: the ") {
				t.Errorf("%d %s", code, text)
			}
		}
	})
}
