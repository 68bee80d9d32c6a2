// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ctrlkit/ctrlkit/external"
)

// of marks an object as that of an operator.
func of(operator string) func(*User) {
	return func(obj *User) { obj.Annotations = map[string]string{operatorAnnotation: operator} }
}

// An object that another operator has claimed is left alone, also while it is deleted, and reported
// once.
func TestAnObjectOfAnotherOperator(t *testing.T) {
	inCluster(t, func(c *cluster) {
		o := c.start(&operator{options: external.Funcs[*User]{Operator: "us"}, skipUnchanged: true})
		c.create(of("them"), admitted)
		c.edit(func(obj *User) { obj.Spec.Name = "other" })
		c.annotate(prod(), "policy.ctrlkit.dev/reconcile", "detach-on-delete")
		c.delete()
		time.Sleep(24 * time.Hour)
		if took, writes := o.take(), c.takeWrites(); took != "" || len(writes) > 0 {
			t.Errorf("calls %s, writes %q", took, writes)
		}
		if obj := c.get(); obj == nil || len(obj.Status.Conditions) > 0 {
			t.Errorf("it has become %+v", obj)
		}
		want := `Normal AnotherOperator annotation lifecycle.ctrlkit.dev/operator is "them", and this operator is "us": the object is left alone; change the annotation to hand it over`
		equal(t, "events", strings.Join(o.takeEvents(), "\n"), want)
	})
}

// Without an option, an operator takes objects as they are, and marks none.
func TestAnOperatorWithoutAName(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.start(&operator{})
		c.create(of("them"))
		equal(t, "Ready", c.condition("Ready"), "True Ready")
		equal(t, "annotation", c.get().Annotations[operatorAnnotation], "them")
	})
}

// An object is handed over by changing the annotation: from then on the other operator reconciles
// it, and it alone.
func TestHandOver(t *testing.T) {
	inCluster(t, func(c *cluster) {
		us := c.start(&operator{options: external.Funcs[*User]{Operator: "us"}, skipUnchanged: true})
		c.create()
		them := c.start(&operator{options: external.Funcs[*User]{Operator: "them"}, skipUnchanged: true})
		if took := them.take(); took != "" {
			t.Errorf("the other operator calls %s", took)
		}
		us.take()
		c.annotate(user("prod", "a"), operatorAnnotation, "them")
		if took := us.take(); took != "" {
			t.Errorf("the operator that had it calls %s", took)
		}
		if took := them.take(); !strings.HasPrefix(took, "Claim CreateOrUpdate") {
			t.Errorf("the operator that gets it calls %s", took)
		}
		c.delete()
		if took := us.take(); took != "" || c.get() != nil {
			t.Errorf("the operator that had it calls %s", took)
		}
		equal(t, "calls of the operator that has it", them.take(), "Delete")
		for _, o := range []*operator{us, them} {
			if events := o.takeEvents(); len(events) != 1 {
				t.Errorf("events %q, want one", events)
			}
		}
	})
}

// Of two operators that see an unmarked object at the same time, one claims it, and the other makes
// nothing.
func TestTwoOperatorsClaimAtOnce(t *testing.T) {
	inCluster(t, func(c *cluster) {
		var made []string
		operators := map[string]*operator{}
		for _, name := range []string{"us", "them"} {
			o := &operator{recorder: newRecorder(), options: external.Funcs[*User]{Operator: name}}
			o.claim = func(context.Context, *request) error {
				time.Sleep(10 * time.Millisecond) // so that both claim before one of them writes
				return nil
			}
			o.create = func(context.Context, *request) error {
				c.mu.Lock()
				defer c.mu.Unlock()
				if !slices.Contains(made, name) {
					made = append(made, name)
				}
				return nil
			}
			operators[name] = c.start(o)
		}
		c.create()
		time.Sleep(time.Minute)
		if len(made) != 1 || made[0] != c.get().Annotations[operatorAnnotation] {
			t.Errorf("%v have made something, and the object is that of %q", made, c.get().Annotations[operatorAnnotation])
		}
		for name, o := range operators {
			if took := o.take(); !strings.HasPrefix(took, "Claim") {
				t.Errorf("operator %s did not try: %q", name, took)
			}
		}
		equal(t, "Ready", c.condition("Ready"), "True Ready")
	})
}
