// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/json"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/cluster"
	"github.com/ctrlkit/ctrlkit/internal/sim/transition"
)

// course is which part of a transition a run shows.
type course struct {
	change *transition.Change // nil in a run that shows how the objects are without one
	fresh  bool               // the object is created as changed
}

// played is what a run of a course has shown. Only the driver uses it.
type played struct {
	course
	samples []*unstructured.Unstructured // objects that the script has created, as it has
	written map[string]bool              // objects that the operator or a user has written, and whether a user has
	failing []judge.Failing              // at the end of the script
	invalid bool                         // the server refuses the transition
}

func newPlayed(c *course) *played {
	if c == nil {
		return nil
	}
	return &played{course: *c, written: map[string]bool{}}
}

// changes reports whether the object of the transition is changed when the operator is idle.
func (p *played) changes() bool { return p.change != nil && !p.fresh }

// create takes an object that the script creates, and returns it as it is created in the run.
func (p *played) create(body []byte) ([]byte, error) {
	sample := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(body, &sample.Object); err != nil {
		return nil, err
	}
	delete(sample.Object, "status") // the server does not take it
	unstructured.RemoveNestedField(sample.Object, "metadata", "creationTimestamp")
	p.samples = append(p.samples, sample)
	if p.fresh && idOf(sample) == idOf(p.change.Before) {
		sample = p.change.Changed
	}
	return json.Marshal(sample)
}

// idOf returns the kind and the name of an object.
func idOf(obj *unstructured.Unstructured) string {
	return obj.GroupVersionKind().GroupKind().String() + " " + obj.GetNamespace() + "/" + obj.GetName()
}

// patchOf returns what "kubectl apply" sends for an object of which another form was applied
// before.
func patchOf(from, to *unstructured.Unstructured, current []byte) ([]byte, error) {
	before, err := json.Marshal(from)
	if err != nil {
		return nil, err
	}
	after, err := json.Marshal(to)
	if err != nil {
		return nil, err
	}
	return jsonmergepatch.CreateThreeWayJSONMergePatch(before, after, current)
}

// unlessRefused returns the error of a request that makes a transition. It ends the run if the
// server finds the object invalid: then there is no such transition.
func (p *played) unlessRefused(err error) error {
	if p.change != nil && (apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)) {
		p.invalid = true
		return errAborted
	}
	return err
}

// excuses reports whether an operator need not become idle with objects whose last reconcile has
// failed: it tries again and again what a transition asks for.
func (p *played) excuses(failing []judge.Failing) bool {
	return p != nil && p.change != nil && len(failing) > 0
}

// noteWritten notes who has written an object.
func (p *played) noteWritten(c apiserver.Change) {
	content := c.New
	if content == nil {
		content = c.Old
	}
	if byUser := strings.HasPrefix(c.Actor, "user"); byUser || cluster.IsOperator(c.Actor) {
		of := cluster.ObjectName(c.Resource, c.Namespace, cluster.CanonicalName(c.Name, content))
		p.written[of] = p.written[of] || byUser
	}
}

// things returns what the operator or a user has written, as snapshots name it, and whether a user
// has.
func (p *played) things(names *strings.Replacer) things {
	list := things{}
	for of, byUser := range p.written {
		list[names.Replace(of)] = byUser
	}
	return list
}

// things are objects that the operator or a user has written, and whether a user has.
type things map[string]bool

// counts reports whether a thing is compared: it is one of these, or outside the cluster.
func (list things) counts(thing string) bool {
	thing, _, _ = strings.Cut(thing, " #") // the number of those that have the same name
	_, ok := list[thing]
	return ok || strings.HasPrefix(thing, "external ")
}
