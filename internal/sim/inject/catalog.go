// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/cluster"
)

// A Catalog records every place of a run at which a fault can strike. A nil one records nothing.
type Catalog struct {
	places []fault.Place
	seen   map[string]int // events so far, by kind
}

// note records a place.
func (c *Catalog) note(p fault.Place) {
	if c == nil {
		return
	}
	if p.Point == fault.AtEvent {
		if c.seen == nil {
			c.seen = map[string]int{}
		}
		c.seen[p.Of] = p.At
	}
	c.places = append(c.places, p)
}

// All returns what was recorded, in the order in which it happened.
func (c *Catalog) All() []fault.Place {
	if c == nil {
		return nil
	}
	return slices.Clone(c.places)
}

// Places returns what was recorded, in the order in which plans are tried. complete fills in what
// is known only at the end of the run.
func (c *Catalog) Places(checkpoints int, complete func(*fault.Place)) []fault.Place {
	places := []fault.Place{{Point: fault.AtWrite}} // before the operator starts
	for n := range checkpoints {
		places = append(places, fault.Place{Point: fault.WhenIdle, At: n + 1})
	}
	for _, point := range []fault.Point{fault.AtWrite, fault.AtRead, fault.AtCall, fault.AtEvent, fault.AtDeletion, fault.AtDetour} {
		places = append(places, slices.DeleteFunc(c.All(), func(p fault.Place) bool { return p.Point != point })...)
	}
	for i := range places {
		complete(&places[i])
	}
	return places
}

// write records a write, with what decides which faults can strike there.
func (c *Catalog) write(in *cluster.Cluster, n int, r *apiserver.Request) {
	if c == nil {
		return
	}
	p := placeOf(in, n, r)
	p.Write.Seen = maps.Clone(c.seen)
	c.note(p)
}

// placeOf returns a write as a place.
func placeOf(in *cluster.Cluster, n int, r *apiserver.Request) fault.Place {
	target := cluster.TargetOf(r)
	w := &fault.Write{
		Verb: r.Verb, Subresource: r.Subresource, Named: (r.Verb == "create" || cluster.IsApply(r)) && r.Subresource == "" && !strings.HasSuffix(target, "*"),
	}
	if created, ok := cluster.CreatedBy(r); ok {
		w.Owned = cluster.IsOwned(created)
	}
	if _, err := in.LookUp(target); err == nil {
		w.Exists = true
		w.AddsFinalizer = addsFinalizer(in, r)
		w.Conditional = r.Verb != "create" && hasCondition(r)
		w.Child = isChild(in, r)
	}
	for _, of := range in.Written() {
		current, err := in.LookUp(of)
		if err != nil || in.IsPrerequisite(of) {
			continue
		}
		if current.GetDeletionTimestamp() == nil && !holdsUsersObjects(in, of) {
			w.Users = append(w.Users, of)
		}
		if status, _ := current.Object["status"].(map[string]any); len(status) > 0 && !strings.HasPrefix(of, "namespaces ") { // that of a Namespace is the server's
			w.Statuses = append(w.Statuses, of)
		}
		if len(in.Added(of, "annotations", current.GetAnnotations()))+len(in.Added(of, "labels", current.GetLabels())) > 0 {
			w.Annotated = append(w.Annotated, of)
		}
	}
	return fault.Place{Point: fault.AtWrite, At: n, Site: cluster.Describe(r), Write: w, Withholdable: in.Withholdable()}
}

// holdsUsersObjects reports whether an object is a Namespace with objects of users in it: no one
// creates those again when the Namespace is, so that no operator can mend its deletion.
func holdsUsersObjects(in *cluster.Cluster, of string) bool {
	name, ok := strings.CutPrefix(of, "namespaces ")
	return ok && slices.ContainsFunc(in.Written(), func(other string) bool {
		_, key, _ := strings.Cut(other, " ")
		return strings.HasPrefix(key, strings.TrimPrefix(name, "/")+"/")
	})
}

// addsFinalizer reports whether a write gives the first finalizer to an object.
func addsFinalizer(in *cluster.Cluster, r *apiserver.Request) bool {
	current, err := in.LookUp(cluster.TargetOf(r))
	return err == nil && r.Subresource == "" && r.Verb != "create" && len(current.GetFinalizers()) == 0 && hasFinalizers(r.Body)
}

// isChild reports whether a write is about a child of the operator's objects that is there and that
// the operator creates again when another client deletes it.
func isChild(in *cluster.Cluster, r *apiserver.Request) bool {
	target := cluster.TargetOf(r)
	current, err := in.LookUp(target)
	return err == nil && in.IsChild(target) && len(current.GetFinalizers()) == 0 && !onceOnly[r.Resource.GroupResource().String()]
}

// onceOnly are the kinds of children that operators rightly do not create again when they are gone:
// what a Job has done is done, and what a PersistentVolumeClaim held is lost.
var onceOnly = map[string]bool{"jobs.batch": true, "persistentvolumeclaims": true}

// hasCondition reports whether a write says which state of the object it is about, so that it is
// refused when the object has changed: an update or a patch with a resource version, or a deletion
// with one as its precondition. A real server tries other patches again itself.
func hasCondition(r *apiserver.Request) bool {
	var body struct {
		Metadata      struct{ ResourceVersion string }
		Preconditions struct{ ResourceVersion string }
	}
	if json.Unmarshal(r.Body, &body) != nil {
		return r.Verb == "patch" && strings.Contains(string(r.Body), `"/metadata/resourceVersion"`)
	}
	if r.Verb == "delete" {
		return body.Preconditions.ResourceVersion != ""
	}
	return body.Metadata.ResourceVersion != ""
}

// hasFinalizers reports whether the body of a write sets finalizers, as an object, a merge patch or
// a JSON patch.
func hasFinalizers(body []byte) bool {
	var object struct {
		Metadata struct{ Finalizers []string }
	}
	if json.Unmarshal(body, &object) == nil {
		return len(object.Metadata.Finalizers) > 0
	}
	return strings.Contains(string(body), "/metadata/finalizers")
}
