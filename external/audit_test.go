// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/external"
)

// lists returns one list after the other.
type lists [][]external.Resource

func (l *lists) List(context.Context) ([]external.Resource, error) {
	if len(*l) == 0 {
		return nil, errors.New("no list is left")
	}
	first := (*l)[0]
	*l = (*l)[1:]
	return first, nil
}

// holders returns objects without a scope.
func holders[T client.Object](all []T) (made []external.Holder) {
	for _, obj := range all {
		made = append(made, external.Holder{Object: obj})
	}
	return made
}

func TestAudit(t *testing.T) {
	object := func(uid, id string) *Depot {
		d := depot(uid)
		d.UID = types.UID(uid)
		if id != "" {
			d.Annotations = map[string]string{external.IDAnnotation: id}
		}
		return d
	}
	deleted := object("u", "1")
	deleted.DeletionTimestamp = &metav1.Time{Time: time.Unix(0, 0)}
	for name, tt := range map[string]struct {
		before, after    []external.Resource
		objects          []*Depot
		orphans, missing []string
	}{
		"all is well":                    {before: []external.Resource{{ID: "1", Owner: "u"}}, objects: []*Depot{object("u", "1")}},
		"the owner is gone":              {before: []external.Resource{{ID: "1", Owner: "u"}}, orphans: []string{"1"}},
		"another object of the name":     {before: []external.Resource{{ID: "1", Owner: "u"}}, objects: []*Depot{object("v", "")}, orphans: []string{"1"}},
		"a duplicate":                    {before: []external.Resource{{ID: "1", Owner: "u"}, {ID: "2", Owner: "u"}}, objects: []*Depot{object("u", "1")}, orphans: []string{"2"}},
		"listed twice":                   {before: []external.Resource{{ID: "1", Owner: "u"}, {ID: "1", Owner: "u"}}, orphans: []string{"1"}},
		"of another operator":            {before: []external.Resource{{ID: "1", Owner: ""}}},
		"adopted, without an owner":      {before: []external.Resource{{ID: "1", Owner: ""}}, objects: []*Depot{object("u", "1")}},
		"just created, not recorded yet": {before: []external.Resource{{ID: "1", Owner: "u"}}, objects: []*Depot{object("u", "")}},
		"the resource is gone":           {objects: []*Depot{object("u", "1")}, missing: []string{"u"}},
		"deleted with its resource":      {objects: []*Depot{deleted}},
		"deleted meanwhile":              {before: []external.Resource{{ID: "1", Owner: "u"}}, after: []external.Resource{}},
		"created meanwhile":              {after: []external.Resource{{ID: "1", Owner: "u"}}, objects: []*Depot{object("u", "1")}},
	} {
		t.Run(name, func(t *testing.T) {
			if tt.after == nil {
				tt.after = tt.before
			}
			unowned, gone, err := external.Audit(t.Context(), &lists{tt.before, tt.after}, func(context.Context) ([]external.Holder, error) { return holders(tt.objects), nil })
			if err != nil {
				t.Fatal(err)
			}
			var orphans, missing []string
			for _, r := range unowned {
				orphans = append(orphans, r.ID)
			}
			for _, obj := range gone {
				missing = append(missing, obj.GetName())
			}
			if diff := cmp.Diff([][]string{tt.orphans, tt.missing}, [][]string{orphans, missing}); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAuditFails(t *testing.T) {
	none := func(context.Context) ([]external.Holder, error) { return nil, nil }
	wrong := errors.New("no permission")
	for name, tt := range map[string]struct {
		lists   lists
		objects func(context.Context) ([]external.Holder, error)
		want    string
	}{
		"first list":  {nil, none, "listing the resources: no list is left"},
		"objects":     {lists{nil}, func(context.Context) ([]external.Holder, error) { return nil, wrong }, "listing the objects: no permission"},
		"second list": {lists{nil}, none, "listing the resources again: no list is left"},
	} {
		if _, _, err := external.Audit(t.Context(), &tt.lists, tt.objects); err == nil || err.Error() != tt.want {
			t.Errorf("%s: got %v, want %s", name, err, tt.want)
		}
	}
}
