// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package program_test

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
	"github.com/ctrlkit/ctrlkit/internal/sim/program"
	"github.com/ctrlkit/ctrlkit/internal/sim/run"
)

const shopDefinition = `
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
          spec: {type: object, properties: {size: {type: integer}}}
          status: {type: object, properties: {message: {type: string}}}
`

// The bugs of the operator of Shops.
const (
	shops    = "shops"
	stubborn = "shops: never changes a ConfigMap that is there"
	ratchet  = "shops: a size never falls"
	silent   = "shops: says nothing of a mistake"
	reported = "shops: says each message once"
)

// shopper keeps a ConfigMap with the size of each Shop, and says in its status if it cannot.
type shopper struct {
	client.Client
	bug      string
	reported map[string]bool // names of Shops
}

func newShop() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Shop"})
	return u
}

func (r *shopper) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	shop := newShop()
	if err := r.Get(ctx, req.NamespacedName, shop); err != nil || shop.GetDeletionTimestamp() != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	size, _, err := unstructured.NestedInt64(shop.Object, "spec", "size")
	if err != nil {
		return ctrl.Result{}, err
	}
	message := ""
	if size < 0 {
		message = "spec.size is below zero"
	} else if err := r.keep(ctx, shop, size); err != nil {
		return ctrl.Result{}, err
	}
	said, _, err := unstructured.NestedString(shop.Object, "status", "message")
	if err != nil || said == message || r.bug == silent || r.bug == reported && r.reported[req.Name] {
		return ctrl.Result{}, err
	}
	r.reported[req.Name] = true
	if err := unstructured.SetNestedField(shop.Object, message, "status", "message"); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.Status().Update(ctx, shop)
}

func (r *shopper) keep(ctx context.Context, shop *unstructured.Unstructured, size int64) error {
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: shop.GetNamespace(), Name: shop.GetName()}}
	_, err := ctrl.CreateOrUpdate(ctx, r.Client, config, func() error {
		has, err := strconv.ParseInt(config.Data["size"], 10, 64)
		if err == nil && (r.bug == stubborn || r.bug == ratchet && has > size) {
			return nil
		}
		config.Data = map[string]string{"size": strconv.FormatInt(size, 10)}
		return ctrl.SetControllerReference(shop, config, r.Scheme())
	})
	return err
}

// shopOptions returns options for an operator of Shops, whose size is changed from 2 to 3, set to
// its bounds, and to what is a mistake.
func shopOptions(t *testing.T, bug string) program.Options {
	t.Helper()
	o := optionsFor(t, bug)
	d := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.Unmarshal([]byte(shopDefinition), d); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "shop.yaml")
	if err := os.WriteFile(file, []byte("{apiVersion: example.com/v1, kind: Shop, metadata: {name: a}, spec: {size: 2}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	samples, err := run.ReadManifests(file)
	if err != nil {
		t.Fatal(err)
	}
	o.Definitions, o.Samples, o.Script = []*apiextensionsv1.CustomResourceDefinition{d}, samples, nil
	return o
}

// Each mistake about changes is found by the oracle that is meant for it, and by no other one.
func TestTransitionBugs(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		bug, transition string
		want            oracle.Name
		says            string
	}{
		{stubborn, "size: changed", oracle.SameAsFresh, `data.size: got "2", want "3"`},
		{ratchet, "size: changed", oracle.Recovers, `data.size: got "3", want "2"`},
		{silent, "size: wrong", oracle.MistakeReported, "neither its status nor an Event says why"},
	} {
		t.Run(test.bug, func(t *testing.T) {
			t.Parallel()
			o := shopOptions(t, test.bug)
			o.Transitions = regexp.MustCompile(test.transition)
			s, err := program.Explore(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range s.Findings {
				said := f.Example.What
				for _, d := range f.Example.Differences {
					said += "\n" + d.String()
				}
				if f.Oracle != test.want || !strings.Contains(said, test.says) {
					t.Errorf("want only %s with %q, got %s: %s", test.want, test.says, f.Oracle, said)
				}
			}
			if len(s.Findings) == 0 {
				t.Errorf("nothing was found in %d transitions", s.Plans.Run)
			}
		})
	}
}

// An operator that follows each change, and says what it cannot do, is not accused.
func TestTransitionsOfARightOperator(t *testing.T) {
	t.Parallel()
	o := shopOptions(t, shops)
	o.Transitions = regexp.MustCompile("")
	s, err := program.Explore(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Findings) > 0 || s.Plans.Run < 4 {
		t.Errorf("%d transitions, and %+v", s.Plans.Run, s.Findings)
	}
}

// A status that another client removes is written again, by a right operator.
func TestWipedStatus(t *testing.T) {
	t.Parallel()
	given, err := fault.ParsePlan("wipe the status of shops.example.com default/a after write 2")
	if err != nil {
		t.Fatal(err)
	}
	for bug, want := range map[string]int{reported: 1, shops: 0} {
		t.Run(bug, func(t *testing.T) {
			t.Parallel()
			o := shopOptions(t, bug)
			second := o.Samples[0]
			second.Object = second.Object.DeepCopy()
			second.Object.SetName("b")
			o.Samples = append(o.Samples, second)
			for _, m := range o.Samples {
				m.Object.Object["spec"] = map[string]any{"size": int64(-1)} // which has a message
			}
			o.Script, o.Plan = program.ScriptOf(o.Samples, o.Definitions), &given
			s, err := program.Explore(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			if len(s.Findings) != want || s.Plans.Missed > 0 || want == 1 && s.Findings[0].Oracle != oracle.SameEnd {
				t.Errorf("%d plans missed, and %+v", s.Plans.Missed, s.Findings)
			}
		})
	}
}

// What is by design is no finding, and what else is found remains one.
func TestByDesign(t *testing.T) {
	t.Parallel()
	for expression, findings := range map[string]int{
		`^same-as-fresh: shop/a spec\.size`: 0,
		`^recovers: shop/a spec\.size`:      1,
	} {
		t.Run(expression, func(t *testing.T) {
			t.Parallel()
			o := shopOptions(t, stubborn)
			var said []string
			o.Progress = func(text string) { said = append(said, text) }
			o.Transitions, o.ByDesign, o.Parallel = regexp.MustCompile("size: changed"), regexp.MustCompile(expression), 1
			s, err := program.Explore(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			if len(s.Findings) != findings {
				t.Errorf("got %d findings, want %d: %+v", len(s.Findings), findings, s.Findings)
			}
			warned := strings.Contains(strings.Join(said, "\n"), "nothing that is found in 2 plans matches")
			if len(s.Off)+findings != 1 || warned != (findings == 1) {
				t.Errorf("got the declarations %+v, and was warned: %t", s.Off, warned)
			}
		})
	}
}

// A sample that kubectl refuses is used without what is unknown in it, which is said once.
func TestSampleWithAnUnknownField(t *testing.T) {
	t.Parallel()
	o := shopOptions(t, shops)
	for _, m := range o.Samples {
		m.Object.Object["spec"].(map[string]any)["sise"] = int64(3) //nolint:errcheck // it has a spec
	}
	o.Script = program.ScriptOf(o.Samples, o.Definitions)
	o.Plan = &fault.Plan{Faults: []fault.Fault{{Kind: fault.ProveIdle, At: 1}}}
	var warnings []string
	o.Progress = func(text string) {
		if strings.Contains(text, "kubectl apply refuses") {
			warnings = append(warnings, text)
		}
	}
	s, err := program.Explore(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Findings) > 0 || len(warnings) != 1 || !strings.Contains(warnings[0], `strict decoding error: unknown field "spec.sise"; what is unknown is left out`) {
		t.Errorf("got the warnings %q, and %+v", warnings, s.Findings)
	}
}
