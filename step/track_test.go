// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/journal"
)

func TestTheJournalHasWrites(t *testing.T) {
	t.Parallel()
	child := journal.Object{Kind: "ConfigMap", Namespace: "default", Name: "child"}
	get := func(ctx context.Context, c client.Client) (*corev1.ConfigMap, error) {
		cm := configMap("child", nil)
		return cm, c.Get(ctx, client.ObjectKeyFromObject(cm), cm)
	}
	tests := []struct {
		name  string
		write func(ctx context.Context, c client.Client) error
		want  []journal.Wrote
	}{
		{"create", func(ctx context.Context, c client.Client) error {
			return c.Create(ctx, configMap("other", nil))
		}, []journal.Wrote{{Verb: "create", Object: journal.Object{Kind: "ConfigMap", Namespace: "default", Name: "other"}}}},
		{"create what is there", func(ctx context.Context, c client.Client) error {
			return client.IgnoreAlreadyExists(c.Create(ctx, configMap("child", nil)))
		}, []journal.Wrote{{Verb: "create", Object: child, Err: cmpopts.AnyError}}},
		{"update", func(ctx context.Context, c client.Client) error {
			cm, err := get(ctx, c)
			cm.Data = map[string]string{"new": "data"}
			return errors.Join(err, c.Update(ctx, cm))
		}, []journal.Wrote{{Verb: "update", Object: child}}},
		{"patch", func(ctx context.Context, c client.Client) error {
			cm, err := get(ctx, c)
			before := cm.DeepCopy()
			cm.Data = map[string]string{"new": "data", "x.y/z": "odd"}
			cm.Labels = map[string]string{"example.com/tier": "a"}
			return errors.Join(err, c.Patch(ctx, cm, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})))
		}, []journal.Wrote{{Verb: "patch", Object: child, Fields: []string{".data.new", ".data[x.y/z]", ".metadata.labels[example.com/tier]"}}}},
		{"patch as JSON", func(ctx context.Context, c client.Client) error {
			return c.Patch(ctx, configMap("child", nil), client.RawPatch("application/json-patch+json", []byte(`[{"op":"add","path":"/data","value":{"a":"b"}}]`)))
		}, []journal.Wrote{{Verb: "patch", Object: child, Fields: []string{".data"}}}},
		{"apply", func(ctx context.Context, c client.Client) error {
			return c.Apply(ctx, corev1ac.ConfigMap("child", "default").WithData(map[string]string{"new": "data"}), client.FieldOwner("things"), client.ForceOwnership)
		}, []journal.Wrote{{Verb: "apply", Object: child, Fields: []string{".data.new"}}}},
		{"delete", func(ctx context.Context, c client.Client) error {
			return c.Delete(ctx, configMap("child", nil))
		}, []journal.Wrote{{Verb: "delete", Object: child}}},
		{"delete what is not there", func(ctx context.Context, c client.Client) error {
			return client.IgnoreNotFound(c.Delete(ctx, configMap("absent", nil)))
		}, nil},
		{"delete all", func(ctx context.Context, c client.Client) error {
			return c.DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace("default"))
		}, []journal.Wrote{{Verb: "deletecollection", Object: journal.Object{Kind: "ConfigMap"}}}},
		{"the status of another", func(ctx context.Context, c client.Client) error {
			other := newThing()
			other.Name = "b"
			return c.Status().Patch(ctx, other, mergePatch(`{"status":{"size":3}}`))
		}, []journal.Wrote{{
			Verb: "patch", Subresource: "status", Fields: []string{".status.size"},
			Object: journal.Object{Group: "test.example.com", Kind: "Thing", Namespace: "default", Name: "b"},
		}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			other := newThing()
			other.Name = "b"
			w := newWorld(t, newThing(), other, configMap("child", nil))
			w.engine(doing("A", tries(func(ctx context.Context, req *request) error { return test.write(ctx, req.Client) })))
			w.must()
			var got []journal.Wrote
			for _, wrote := range recorded[journal.Wrote](w) {
				if wrote.Object.Name != "a" {
					same(t, "step of the write", "A", wrote.Step)
					wrote.Step = ""
					got = append(got, wrote)
				}
			}
			same(t, "writes", test.want, got, cmpopts.EquateErrors())
		})
	}
}

func TestTheJournalHasReads(t *testing.T) {
	w := newWorld(t, newThing())
	liveEngine(w, doing("A", does(func(ctx context.Context, req *request) {
		_ = req.Client.Get(ctx, client.ObjectKey{Namespace: "default", Name: "absent"}, &corev1.ConfigMap{})
		_ = req.APIReader.Get(ctx, thingRequest.NamespacedName, &Thing{})
		_ = req.APIReader.List(ctx, &corev1.ConfigMapList{}, client.InNamespace("default"))
		_ = req.Client.List(ctx, &corev1.ConfigMapList{}, client.InNamespace("default"))
	})))
	w.must()
	var got []string
	for _, read := range recorded[journal.Read](w) {
		text := read.Step + ": "
		if read.Err != nil {
			if !apierrors.IsNotFound(read.Err) {
				t.Errorf("got %v", read.Err)
			}
			read.Err = nil
			text += "no "
		}
		got = append(got, text+read.String())
	}
	want := []string{"A: no read ConfigMap default/absent", "A: read live Thing default/a", "A: read live ConfigMapList", "A: read ConfigMapList"}
	same(t, "reads", want, got)
}

// A patch is made before it is sent: the answer changes the object that it is made from.
func TestAPatchFromTwoObjectsIsSent(t *testing.T) {
	w := newWorld(t, newThing(), configMap("child", map[string]string{"a": "1"}))
	w.engine(doing("A", func(ctx context.Context, req *request) error {
		cm := &corev1.ConfigMap{}
		if err := req.Client.Get(ctx, client.ObjectKey{Namespace: "default", Name: "child"}, cm); err != nil {
			return err
		}
		before := cm.DeepCopy()
		cm.Data["a"] = "2"
		meanwhile := mergePatch(`{"data":{"b":"1"}}`) // another client's, in the answer
		if err := w.server.Patch(ctx, configMap("child", nil), meanwhile); err != nil {
			return err
		}
		return req.Client.Patch(ctx, cm, client.MergeFrom(before))
	}))
	w.must()
	got := &corev1.ConfigMap{}
	if err := w.server.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "child"}, got); err != nil || got.Data["a"] != "2" {
		t.Errorf("got %v, %v", got.Data, err)
	}
	same(t, "fields", []string{".data.a"}, recorded[journal.Wrote](w)[0].Fields)
}
