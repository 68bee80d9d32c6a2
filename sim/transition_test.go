// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

// shops is the definition of a kind with a page that can be empty, an image, and a name that does
// not change once it is there.
const shops = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: shops.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Shop, listKind: ShopList, plural: shops, singular: shop}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              page: {type: string}
              image: {type: string}
              label: {type: string, x-kubernetes-validations: [{rule: self == oldSelf}]}
          status: {type: object, properties: {error: {type: string}, observedGeneration: {type: integer}}}
`

// shopMistakes are what an operator of Shops may do wrong.
type shopMistakes struct {
	keepsPage bool // the ConfigMap stays when there is no page any more
	silent    bool // nothing says that an image does not exist
	fails     bool // its reconcile returns the error, and nothing else
	panics    bool // without a page
	keepsLast bool // the ConfigMap says which page was there before
	swallows  bool // the error of a deletion
	insists   bool // on a write that is refused, for an image that does not exist, which is right
}

type shopOperator struct {
	client.Client
	shopMistakes
}

func newShop() *unstructured.Unstructured {
	shop := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"page": "hello", "image": "shop:1", "label": "a"}}}
	shop.SetAPIVersion("example.com/v1")
	shop.SetKind("Shop")
	shop.SetName("a")
	shop.SetNamespace("default")
	return shop
}

// shopWorkload is the life of a Shop. Transitions are made before the first update.
func shopWorkload(t *testing.T, m shopMistakes) Workload {
	t.Helper()
	file := filepath.Join(t.TempDir(), "shops.yaml")
	if err := os.WriteFile(file, []byte(shops), 0o600); err != nil {
		t.Fatal(err)
	}
	return Workload{
		Name: fmt.Sprintf("%+v", m), CRDs: []string{file},
		Operator: Manager(func(mgr ctrl.Manager, _ *Process) error {
			o := &shopOperator{mgr.GetClient(), m}
			return ctrl.NewControllerManagedBy(mgr).Named("shops").For(newShop()).Owns(&corev1.ConfigMap{}).Owns(&corev1.Secret{}).Complete(o)
		}),
		Script: func(w *World) {
			w.Create(newShop())
			w.Settle()
			Update(w, newShop(), func(u *unstructured.Unstructured) { delete(u.Object, "spec") })
			w.Settle()
		},
	}
}

// Reconcile keeps a ConfigMap with the page, and a Secret for an image that exists.
func (o *shopOperator) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	shop := newShop()
	if err := o.Get(ctx, req.NamespacedName, shop); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	page, _, _ := unstructured.NestedString(shop.Object, "spec", "page")
	if page == "" && o.panics {
		panic("no page")
	}
	if err := o.keepPage(ctx, shop, page); errors.Is(err, errForeign) {
		return reconcile.Result{RequeueAfter: time.Second * 30}, nil
	} else if err != nil {
		return reconcile.Result{}, err
	}
	image, _, _ := unstructured.NestedString(shop.Object, "spec", "image")
	invalid := strings.Contains(image, "invalid") || strings.Contains(image, " ")
	if !invalid {
		secret := &corev1.Secret{ObjectMeta: o.child(shop)}
		if err := o.Get(ctx, req.NamespacedName, secret); client.IgnoreNotFound(err) != nil {
			return reconcile.Result{}, err
		} else if err != nil {
			if err := o.Create(ctx, secret); err != nil {
				return reconcile.Result{}, err
			}
		}
	}
	if invalid && o.fails {
		return reconcile.Result{}, fmt.Errorf("there is no image %s", image)
	}
	text := ""
	if invalid && !o.silent {
		text = "there is no such image"
	}
	if had, _, _ := unstructured.NestedString(shop.Object, "status", "error"); had == text {
		if invalid && o.insists {
			return reconcile.Result{}, o.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: image}})
		}
		return reconcile.Result{}, nil
	}
	return reconcile.Result{}, o.Status().Update(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Shop", "metadata": shop.Object["metadata"], "status": map[string]any{"error": text},
	}})
}

// errForeign says that the ConfigMap is another one.
var errForeign = errors.New("it belongs to another client")

// child returns the metadata of a child.
func (o *shopOperator) child(shop *unstructured.Unstructured) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: "a", Namespace: "default", OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(shop, shop.GroupVersionKind())}}
}

func (o *shopOperator) keepPage(ctx context.Context, shop *unstructured.Unstructured, page string) error {
	cm := &corev1.ConfigMap{ObjectMeta: o.child(shop)}
	err := o.Get(ctx, client.ObjectKeyFromObject(cm), cm)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	there := err == nil
	last := cm.Data["page"]
	if there && !metav1.IsControlledBy(cm, shop) {
		return errForeign
	}
	switch {
	case page == "" && there && !o.keepsPage:
		err := o.Delete(ctx, cm, client.Preconditions{UID: new(cm.UID)})
		if o.swallows {
			return nil
		}
		return client.IgnoreNotFound(err)
	case page == "" || there && last == page:
		return nil
	}
	cm.Data = map[string]string{"page": page}
	if !there {
		return o.Create(ctx, cm)
	}
	if o.keepsLast {
		cm.Data["last"] = last
	}
	return o.Update(ctx, cm)
}

// exploreShops runs transitions of a Shop, and returns what is found: the oracles, the transition
// that shows it, and the worst difference.
func exploreShops(t *testing.T, m shopMistakes, options ...Option) (r *Report, found []string) {
	t.Helper()
	r = Explore(t, shopWorkload(t, m), options...)
	if r == nil {
		t.SkipNow() // a worker, or a plan that was asked for
	}
	for _, f := range r.Findings {
		text := string(f.Violation.Oracle) + ": " + f.Plan.Transition
		if len(f.Violation.Differences) > 0 {
			text += "; " + f.Violation.Worst().String()
		}
		found = append(found, text)
	}
	return r, found
}

// Each mistake is found, at a transition that shows it, and the right twin is silent.
func TestTransitions(t *testing.T) {
	rings.Test(t, "simulates")
	for _, test := range []struct {
		name     string
		mistakes shopMistakes
		want     []string
	}{
		{"right", shopMistakes{}, nil},
		{"keeps a child", shopMistakes{keepsPage: true}, []string{`same-as-fresh: shop/a spec.page: removed; + configmaps default/a should not be there`}},
		{"says nothing of a mistake", shopMistakes{silent: true}, []string{
			`mistake-reported: shop/a spec.image: wrong, "registry.invalid/none:0" (no such image)`, `mistake-reported: shop/a spec.image: wrong, "not an image" (not a reference)`,
		}},
		{"fails and says nothing", shopMistakes{fails: true}, []string{
			`mistake-reported: shop/a spec.image: wrong, "registry.invalid/none:0" (no such image)`, `mistake-reported: shop/a spec.image: wrong, "not an image" (not a reference)`,
		}},
		{"panics", shopMistakes{panics: true}, []string{`no-panic: shop/a spec.page: removed`}},
		{"remembers what was", shopMistakes{keepsLast: true}, []string{
			`same-as-fresh: shop/a spec.page: changed, "hello2"; ~ configmaps default/a data.last: got "hello", want nothing`,
			`recovers: shop/a spec.page: changed, "hello2"; ~ configmaps default/a data.last: got "hello2", want nothing`,
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			r, found := exploreShops(t, test.mistakes, WithTransitions(""))
			slices.Sort(found)
			slices.Sort(test.want)
			if diff := cmp.Diff(test.want, found); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			for _, f := range r.Findings {
				if !strings.Contains(f.Again, "-sim.plan='change shop/a spec.") || !strings.Contains(f.Text, f.Plan.Transition) {
					t.Errorf("again: %s\n%s", f.Again, f.Text)
				}
			}
		})
	}
}

// A label that can't be changed is left out, and what is picked is run: all, those of a name, or
// some of each kind.
func TestPickedTransitions(t *testing.T) {
	rings.Test(t, "simulates")
	names := func(name string, options ...Option) (list []string) {
		t.Run(name, func(t *testing.T) {
			r, found := exploreShops(t, shopMistakes{}, options...)
			if len(found) > 0 {
				t.Errorf("found %v", found)
			}
			for _, p := range r.Plans {
				list = append(list, p.Transition)
			}
		})
		return list
	}
	all := names("all", WithTransitions(""))
	if slices.ContainsFunc(all, func(name string) bool { return strings.HasPrefix(name, "shop/a spec.label: changed") }) || !slices.Contains(all, "shop/a spec.label: removed") {
		t.Errorf("got %q", all)
	}
	if diff := cmp.Diff([]string{`shop/a spec.page: changed, "hello2"`, "shop/a spec.page: removed", `shop/a spec.page: empty, ""`}, names("page", WithTransitions(`spec\.page: `))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	some := names("some", WithTransitions(""), WithSample(4))
	kinds := map[string]bool{}
	for _, name := range some {
		_, kind, _ := strings.Cut(name, ": ")
		kind, _, _ = strings.Cut(kind, ",")
		kinds[kind] = true
	}
	if len(some) != 4 || len(kinds) != 4 {
		t.Errorf("got the sample %q", some)
	}
}

// A mistake that shows only when something goes wrong after a change is found with faults, and the
// right twin survives all of them.
func TestTransitionsWithFaults(t *testing.T) {
	rings.Test(t, "simulates")
	for _, swallows := range []bool{false, true} {
		t.Run(fmt.Sprint(swallows), func(t *testing.T) {
			r, found := exploreShops(t, shopMistakes{swallows: swallows}, WithTransitions(`spec\.page: removed`), WithFaults(1000))
			want := "change shop/a spec.page: removed; refuse write "
			shown := slices.ContainsFunc(r.Findings, func(f Finding) bool {
				return f.Violation.Oracle == oracle.SameEnd && strings.HasPrefix(f.Plan.String(), want) && strings.Contains(f.Again, want)
			})
			if shown != swallows || !swallows && len(found) > 0 {
				t.Errorf("found %q", found)
			}
			if len(r.Plans) < 50 || slices.ContainsFunc(r.Plans, func(p fault.Plan) bool { return p.Transition == "" || strings.HasSuffix(p.String(), " write 1") }) {
				t.Errorf("there are %d plans: %v", len(r.Plans), r.Plans)
			}
		})
	}
	t.Run("some", func(t *testing.T) {
		r, _ := exploreShops(t, shopMistakes{}, WithTransitions(`spec\.page: `), WithFaults(2))
		faults := map[string]bool{}
		for _, p := range r.Plans {
			for _, f := range p.Faults {
				faults[f.String()] = true
			}
		}
		if len(r.Plans) != 9 || len(faults) < 5 { // mostly others with each transition
			t.Errorf("got %q", r.Plans)
		}
	})
}

// An operator that tries again and again what a mistake asks for need not become idle, even if it
// is idle only after a time that is longer than the one between two tries.
func TestMistakesAreTriedAgain(t *testing.T) {
	rings.Test(t, "simulates")
	w := shopWorkload(t, shopMistakes{insists: true})
	w.Quiet = 20 * time.Minute
	r := Explore(t, w, WithTransitions("spec.image: wrong"))
	if r != nil && (len(r.Findings) > 0 || len(r.Plans) != 2) {
		t.Errorf("%d plans, found %v", len(r.Plans), r.Findings)
	}
}

// What is by design is no finding, and is counted. What matches nothing is said, too.
func TestByDesign(t *testing.T) {
	rings.Test(t, "simulates")
	r, found := exploreShops(t, shopMistakes{keepsPage: true}, WithTransitions(`spec\.page`),
		ByDesign(`^same-as-fresh: .* spec\.page: (removed|empty)`, "a page stays"), ByDesign("^recovers", "nothing does"))
	if len(found) > 0 {
		t.Errorf("found %v", found)
	}
	summary := r.simulation.Summary()
	for _, want := range []string{`by design, in 2 plans: a page stays`, `violates "^recovers" by design, which nothing does: nothing does`, "3 transitions;"} {
		if !strings.Contains(summary, want) {
			t.Errorf("the summary lacks %q:\n%s", want, summary)
		}
	}
}

// A transition that the objects of the script do not have is said, and so is one without the
// option.
func TestUnknownTransition(t *testing.T) {
	w := shopWorkload(t, shopMistakes{})
	for name, test := range map[string]struct {
		options []Option
		want    string
	}{
		"unknown": {[]Option{WithTransitions("")}, `have no transition "shop/a spec.none: removed"`},
		"without": {nil, "has no option WithTransitions"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSettings(test.options)
			of := w
			if s.transitions != nil {
				of.course = &course{}
			}
			crds := readCRDs(t, &of)
			first, err := runPlan(t, &of, crds, fault.Plan{}, nil, s.silent())
			if err != nil {
				t.Fatal(err)
			}
			ref := first.asReference()
			if _, err := runPlan(t, &of, crds, fault.Plan{Transition: "shop/a spec.none: removed"}, ref, s.silent()); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got the error %v, want one with %q", err, test.want)
			}
			if s.transitions == nil {
				return
			}
			if _, err := ref.transitions(crds, regexp.MustCompile(`spec\.none`)); err == nil || !strings.Contains(err.Error(), `no transition matches "spec`) {
				t.Errorf("got the error %v", err)
			}
		})
	}
}
