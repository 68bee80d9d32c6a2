// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/step"
)

// readsLabelled reads the Secrets that a label names, whether they are there or not.
var readsLabelled = doing("Read", func(ctx context.Context, req *request) error {
	for _, name := range strings.FieldsFunc(req.Object.GetLabels()["secrets"], func(r rune) bool { return r == '.' }) {
		if err := req.Client.Get(ctx, client.ObjectKey{Namespace: "default", Name: name}, &corev1.Secret{}); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
})

// What a step has read by its name reconciles the objects for which it was read, and no others, also if
// it was not there; the watch need not know the names.
func TestWatchOfWhatIsRead(t *testing.T) {
	for name, watch := range map[string]step.Watch{
		"read":           {Object: &corev1.Secret{}, Read: true},
		"read and owned": {Object: &corev1.Secret{}, Read: true, Owned: true},
	} {
		for _, skips := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, skips %v", name, skips), func(t *testing.T) {
				inCluster(t, func(c *cluster) { readsInCluster(t, c, watch, skips) })
			})
		}
	}
}

func readsInCluster(t *testing.T, c *cluster, watch step.Watch, skips bool) {
	patch := func(obj client.Object, body string) {
		c.must(c.user.Patch(t.Context(), obj, client.RawPatch("application/merge-patch+json", []byte(body))))
	}
	secret := func(name string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	}
	c.create(secret("a"), secret("b"))
	c.start(operator{name: "things", skipUnchanged: skips, steps: steps{watching(readsLabelled, watch)}})
	pass(5 * time.Second)
	for _, happens := range []struct {
		name string
		do   func()
		runs bool
	}{
		{"nothing is read", func() { patch(secret("a"), `{"data":{"k":"MQ=="}}`) }, false},
		{"it reads one", func() { patch(c.thing(), `{"metadata":{"labels":{"secrets":"near.a"}}}`) }, true},
		{"that changes", func() { patch(secret("a"), `{"data":{"k":"Mg=="}}`) }, true},
		{"another one changes", func() { patch(secret("b"), `{"data":{"k":"Mg=="}}`) }, false},
		{"one that was not there is created", func() { c.create(secret("near")) }, true},
		{"it is deleted", func() { c.must(c.user.Delete(t.Context(), secret("near"))) }, true},
		{"it reads the other one", func() { patch(c.thing(), `{"metadata":{"labels":{"secrets":"b"}}}`) }, true},
		{"the former one changes", func() { patch(secret("a"), `{"data":{"k":"Mw=="}}`) }, false},
		{"the other one changes", func() { patch(secret("b"), `{"data":{"k":"Mw=="}}`) }, true},
	} {
		before := c.ran("things")
		happens.do()
		pass(time.Second)
		same(t, happens.name+": the step ran", happens.runs, c.ran("things") > before)
	}
	if !watch.Owned {
		return
	}
	thing := c.thing()
	patch(secret("b"), fmt.Sprintf(`{"metadata":{"ownerReferences":[{"apiVersion":%q,"kind":"Thing","name":%q,"uid":%q,"controller":true}]}}`,
		thingVersion.String(), thing.Name, thing.UID))
	pass(time.Second)
	before := len(c.triggered("things"))
	patch(secret("b"), `{"data":{"k":"NA=="}}`)
	pass(time.Second)
	causes := slices.DeleteFunc(c.triggered("things")[before:], func(cause string) bool { return !strings.Contains(cause, "Secret") })
	same(t, "causes of one change of what is owned and read", 1, len(causes))
}
