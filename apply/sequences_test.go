// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/ctrlkit/ctrlkit/apply"
	"github.com/ctrlkit/ctrlkit/controlplane"
	"github.com/ctrlkit/ctrlkit/internal/sim/planetest"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

var (
	sequences = flag.Int("sequences", 2, "compare sets with the model over so many `sequences`")
	sequence  = flag.Int("sequence", 0, "compare only the sequence of this `seed`")
)

// An operation is what happens between two comparisons. Each means something in every state, so
// that a sequence remains one when some are removed.
type operation struct {
	Verb     string
	Shop     int
	Slot     string
	Data     map[string]string
	Policies []apply.Policy
	Wave     int
}

func (o operation) String() string {
	return fmt.Sprintf("%s %s %s [%s] %v wave %d", o.Verb, shopName(o.Shop), o.Slot, dataText(o.Data), o.Policies, o.Wave)
}

var verbs = []string{
	"want", "want", "want", "want", "want", "want", "forget", "forget", "edit", "edit", "annotate", "delete", "create", "recreate", "restart",
}

var policySets = [][]apply.Policy{
	nil, nil, nil, {apply.CreateOnly}, {apply.Replace}, {apply.Keep}, {apply.Unowned}, {apply.Adopt}, {apply.Theirs}, {apply.StopOnConflict}, {apply.NoWait},
	{apply.Adopt, apply.Theirs}, {apply.Adopt, apply.CreateOnly}, {apply.Keep, apply.Theirs},
}

var annotations = [][]apply.Policy{nil, {apply.Keep}, {apply.CreateOnly}, {apply.Adopt}, {apply.Adopt, apply.CreateOnly}, {bogus}}

// drawOperation draws an operation.
func drawOperation(t *rapid.T) operation {
	o := operation{
		Verb: rapid.SampledFrom(verbs).Draw(t, "verb"), Shop: rapid.IntRange(0, 1).Draw(t, "shop"),
		Slot: rapid.SampledFrom(slotNames).Draw(t, "slot"), Wave: rapid.SampledFrom([]int{0, 0, 0, 1, -1}).Draw(t, "wave"),
		Data: map[string]string{},
	}
	for _, key := range []string{"k1", "k2", "k3"} {
		if value := rapid.SampledFrom([]string{"", "1", "2"}).Draw(t, key); value != "" {
			o.Data[key] = value
		}
	}
	o.Policies = rapid.SampledFrom(policySets).Draw(t, "policies")
	if o.Verb == "annotate" {
		o.Policies = rapid.SampledFrom(annotations).Draw(t, "annotation")
	}
	return o
}

var drawSequence = rapid.SliceOfN(rapid.Custom(drawOperation), 10, 25)

// After each operation, what exists is what the model says.
func TestSequences(t *testing.T) {
	rings.Test(t, "takes a second")
	runSequences(t, max(*sequences, 40), func(int) *cluster { return newCluster(t) })
}

// The same on a real control plane.
func TestSequencesOnRealServer(t *testing.T) {
	rings.Test(t, "starts a control plane")
	config := startPlane(t, controlplane.PartControllerManager)
	n := 0
	runSequences(t, *sequences, func(seed int) *cluster {
		n++
		c := connect(t, config, fmt.Sprintf("sequence-%d-%d", seed, n))
		c.patience = 20 * time.Second
		c.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.namespace}})
		return c
	})
}

// startPlane starts a control plane with the definition of Shops, and returns how to connect to it.
func startPlane(t *testing.T, parts controlplane.Parts) *rest.Config {
	t.Helper()
	config := rest.CopyConfig(startShopPlane(t, parts).Config())
	config.QPS = -1
	return config
}

// startShopPlane starts a control plane with the definition of Shops.
func startShopPlane(t *testing.T, parts controlplane.Parts) *controlplane.ControlPlane {
	t.Helper()
	definition := shopDefinition()
	definition.APIVersion, definition.Kind = "apiextensions.k8s.io/v1", "CustomResourceDefinition"
	data, err := yaml.Marshal(definition)
	must(t, err)
	file := filepath.Join(t.TempDir(), "shops.yaml")
	must(t, os.WriteFile(file, data, 0o600))
	return planetest.Start(t, controlplane.Options{Parts: parts, CRDs: []string{file}})
}

func runSequences(t *testing.T, n int, start func(seed int) *cluster) {
	t.Helper()
	first, last := 1, n
	if *sequence != 0 {
		first, last = *sequence, *sequence
	}
	operations, failures := 0, 0
	for seed := first; seed <= last; seed++ {
		list := drawSequence.Example(seed)
		operations += len(list)
		at, difference := compare(start(seed), list)
		if difference == "" {
			continue
		}
		list, difference = shrink(list[:at+1], difference, func() *cluster { return start(seed) })
		var text strings.Builder
		for _, o := range list {
			text.WriteString("  " + o.String() + "\n")
		}
		t.Errorf("sequence %d: after\n%s%s\nagain: go test ./apply -run %s -sequence %d", seed, text.String(), difference, t.Name(), seed)
		if failures++; failures == 3 {
			t.Fatal("the rest is not run")
		}
	}
	t.Logf("%d sequences, %d operations", last-first+1, operations)
}

// shrink removes operations as long as a difference remains.
func shrink(list []operation, difference string, start func() *cluster) ([]operation, string) {
	for i := len(list) - 1; i >= 0; i-- {
		shorter := slices.Delete(slices.Clone(list), i, i+1)
		if at, d := compare(start(), shorter); d != "" {
			list, difference = shorter[:at+1], d
			i = min(i, len(list))
		}
	}
	return list, difference
}

// compare runs a sequence. It returns the first operation after which something else exists, and
// what differs.
func compare(c *cluster, list []operation) (at int, difference string) {
	c.t.Helper()
	r := newRun(c)
	defer r.end()
	for i, o := range list {
		r.do(o)
		failed := r.model.settle()
		want := r.model.String()
		for deadline := time.Now().Add(c.patience); ; time.Sleep(20 * time.Millisecond) {
			difference = r.check(want, failed)
			if difference == "" || !time.Now().Before(deadline) {
				break
			}
		}
		if difference != "" {
			return i, difference
		}
	}
	return 0, ""
}

// check reconciles all Shops, and returns how what exists differs from what the model says.
func (r *run) check(want string, failed []bool) string {
	r.t.Helper()
	errs := make([]error, len(r.shops))
	for n := range 20 {
		idle := true
		for i, shop := range r.shops {
			r.operator.takeWrites()
			errs[i] = r.operator.reconcile(shop)
			idle = len(r.operator.takeWrites()) == 0 && idle
		}
		if idle {
			break
		}
		if n == 19 {
			return fmt.Sprintf("it does not become idle: %v", errs)
		}
	}
	if got := r.describe(); got != want {
		return fmt.Sprintf("there is\n%s\nand not\n%s\nerrors: %v", got, want, errs)
	}
	for i, err := range errs {
		if failed[i] != (err != nil) {
			return fmt.Sprintf("the error of %s is %v, and the model fails: %t", shopName(i), err, failed[i])
		}
	}
	return ""
}

// end deletes what is in no namespace.
func (r *run) end() {
	for _, slot := range slotNames {
		if slots[slot].cluster {
			r.delete(slots[slot].empty(r))
		}
	}
	if r.namespace != metav1.NamespaceDefault {
		for _, name := range []string{r.namespace, r.elsewhere()} {
			r.delete(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
	}
}

var _ client.Object = (*Shop)(nil)
