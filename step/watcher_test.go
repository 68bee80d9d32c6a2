// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/step"
)

// watcher returns a step that reads the Secret which a label of its object names, and declares the
// watch of Secrets.
func watcher(s step.Step[*Thing], noted *int) step.Step[*Thing] {
	return watching(s, step.Watch{
		Object: &corev1.Secret{},
		NamedBy: func(obj client.Object) []client.ObjectKey {
			return []client.ObjectKey{{Name: obj.GetLabels()["secret"]}}
		},
		Changed: func(before, now client.Object) bool {
			*noted++
			return before == nil || now == nil || before.GetLabels()["matters"] != now.GetLabels()["matters"]
		},
	})
}

// A declared watch reconciles the objects that name what has changed, as far as its change counts,
// and follows the names.
func TestDeclaredWatchOfNamedObjects(t *testing.T) {
	patch := func(c *cluster, obj client.Object, labels string) {
		c.must(c.user.Patch(t.Context(), obj, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":`+labels+`}}`))))
		pass(time.Second)
	}
	secret := func(name string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	}
	inCluster(t, func(c *cluster) {
		c.create(secret("a"))
		c.create(secret("b"))
		noted := 0
		c.start(operator{name: "things", steps: steps{watcher(doing("A", passes), &noted)}})
		pass(5 * time.Second)
		for _, happens := range []struct {
			name string
			do   func()
			runs bool
		}{
			{"no name", func() { patch(c, secret("a"), `{"matters":"1"}`) }, false},
			{"it names one", func() { patch(c, c.thing(), `{"secret":"a"}`) }, true},
			{"that changes", func() { patch(c, secret("a"), `{"matters":"2"}`) }, true},
			{"that changes in what does not count", func() { patch(c, secret("a"), `{"other":"2"}`) }, false},
			{"another one changes", func() { patch(c, secret("b"), `{"matters":"2"}`) }, false},
			{"it names the other one", func() { patch(c, c.thing(), `{"secret":"b"}`) }, true},
			{"the former one changes", func() { patch(c, secret("a"), `{"matters":"3"}`) }, false},
			{"the other one changes", func() { patch(c, secret("b"), `{"matters":"3"}`) }, true},
			{"it is deleted", func() { c.must(c.user.Delete(t.Context(), secret("b"))); pass(time.Second) }, true},
			{"it is created", func() { c.must(c.user.Create(t.Context(), secret("b"))); pass(time.Second) }, true},
		} {
			before := c.ran("things")
			happens.do()
			same(t, fmt.Sprint(happens.name, ": the step ran"), happens.runs, c.ran("things") > before)
		}
		if noted == 0 {
			t.Error("the function was not asked")
		}
	})
}
