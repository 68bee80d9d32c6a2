// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/cluster"
	"github.com/ctrlkit/ctrlkit/internal/sim/memory"
	"github.com/ctrlkit/ctrlkit/internal/sim/trial"
)

// others is who else changes the cluster of a run: users who take back what they did, and other
// clients.
type others struct {
	cluster *memory.Cluster
	history *history
	trace   *trace
	oracles *oracles

	mu        sync.Mutex                   // guards what follows
	returning []*unstructured.Unstructured // what a user creates again when it is gone
	absent    []absence                    // what a user creates again when the operator is idle
	occupants []occupant                   // what has names that the operator needs, until it is idle
}

// An occupant is an object of another client that has a name which the operator needs.
type occupant struct {
	object *unstructured.Unstructured
	since  time.Duration // by clock
	owners []types.UID   // of an orphan: those for which the operator was about to create the object
}

// describe returns what decides which faults can strike at a write.
func (o *others) describe(request *apiserver.Request) *fault.Write {
	w := &fault.Write{
		Verb: request.Verb, Subresource: request.Subresource, Named: namesObject(request),
		Conditional: request.Verb == "update" || bytes.Contains(request.Body, []byte(`"resourceVersion"`)),
		Users:       o.history.ofUsers(), Statuses: o.history.withStatus(),
	}
	if created, ok := cluster.CreatedBy(request); ok {
		w.Owned = cluster.IsOwned(created)
	}
	if request.Name != "" {
		_, err := o.cluster.Do("sim", "ctrlkit", http.MethodGet, trial.PathOf(request.Resource, request.Namespace, request.Name), "", nil)
		w.Exists = err == nil
		w.Child = o.history.isChild(thing(request.Resource.GroupResource().String(), request.Namespace, request.Name))
	}
	return w
}

// other does what another client does at a write.
func (o *others) other(f fault.Fault, request *apiserver.Request) {
	path := trial.PathOf(request.Resource, request.Namespace, request.Name)
	switch f.Kind {
	case fault.TouchBeforeWrite:
		o.ask(http.MethodPatch, path, "application/merge-patch+json", map[string]any{"metadata": map[string]any{"annotations": map[string]any{touched: "true"}}})
	case fault.DeleteBeforeWrite:
		o.ask(http.MethodDelete, path, "", nil)
	case fault.OccupyName:
		o.occupy(request, occupantOf(request))
	case fault.OccupyNameByController:
		o.occupyByController(request)
	case fault.LeaveOrphan:
		o.leaveOrphan(request)
	case fault.Recreate:
		o.recreate(f.Of)
	case fault.DeleteAndCreate, fault.Withhold, fault.WithholdAtDeletion:
		o.withhold(f)
	case fault.WipeStatus:
		o.wipeStatus(f.Of)
	}
}

// occupyByController is what a stranger does whose object has a controller.
func (o *others) occupyByController(request *apiserver.Request) {
	wanted, ok := cluster.CreatedBy(request)
	if !ok {
		return
	}
	collection, content := cluster.ForeignController(wanted)
	controller, ok := o.create(collection, content)
	if !ok {
		return
	}
	occupant := &unstructured.Unstructured{Object: occupantOf(request)}
	occupant.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(controller, controller.GroupVersionKind())})
	o.occupy(request, occupant.Object)
}

// occupy creates an object with the name that a request is about to take. It is deleted as that of
// create is.
func (o *others) occupy(request *apiserver.Request, occupant map[string]any) (*unstructured.Unstructured, bool) {
	if occupant == nil {
		return nil, false // the request can't be read
	}
	return o.create(trial.PathOf(request.Resource, request.Namespace, ""), occupant)
}

// create creates an object of another client, which is deleted when the operator is idle, or by
// makeWayAfter.
func (o *others) create(collection string, content map[string]any) (*unstructured.Unstructured, bool) {
	made, err := o.cluster.Do(otherActor, "other", http.MethodPost, collection, "application/json", content)
	if err != nil {
		o.trace.add("sim", "refused", err.Error())
		return nil, false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.occupants = append(o.occupants, occupant{object: made, since: o.history.clock.now()})
	return made, true
}

// leaveOrphan leaves the object that a request creates, as a deletion of its former owner has left
// it.
func (o *others) leaveOrphan(request *apiserver.Request) {
	wanted, ok := cluster.CreatedBy(request)
	if !ok {
		return
	}
	left, ok := o.occupy(request, cluster.LeftBehind(wanted))
	if !ok {
		return
	}
	o.history.orphaned(left.GetUID())
	if wanted.GetName() == "" {
		return // the operator does not look for it by its name
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range o.occupants {
		for _, reference := range wanted.GetOwnerReferences() {
			if o.occupants[i].object == left {
				o.occupants[i].owners = append(o.occupants[i].owners, reference.UID)
			}
		}
	}
}

// wipeStatus lets another client remove the status of an object.
func (o *others) wipeStatus(what string) {
	u, path := o.written(what)
	if u == nil {
		return
	}
	uid := o.history.uidOf(what)
	o.oracles.see(func(j *judge.Judge) { j.StatusWiped(uid) })
	o.ask(http.MethodPatch, path+"/status", "application/merge-patch+json", map[string]any{"status": nil})
}

// ask sends a request of another client, whose effect is in the trace.
func (o *others) ask(method, path, contentType string, body any) {
	if _, err := o.cluster.Do(otherActor, "other", method, path, contentType, body); err != nil {
		o.trace.add("sim", "refused", method+" "+path+": "+err.Error())
	}
}

// written returns an object as its user has written it, and its path; nil if it is not there any
// more.
func (o *others) written(what string) (u *unstructured.Unstructured, path string) {
	content := o.history.created(what)
	if content == nil {
		return nil, ""
	}
	u = &unstructured.Unstructured{Object: trial.Essential(content)}
	u.SetAPIVersion(fmt.Sprint(content["apiVersion"]))
	u.SetKind(fmt.Sprint(content["kind"]))
	delete(u.Object, "status")
	resource, _, err := o.cluster.ResourceFor(u.GroupVersionKind())
	if err != nil {
		o.trace.add("sim", "refused", err.Error())
		return nil, ""
	}
	return u, trial.PathOf(resource, u.GetNamespace(), u.GetName())
}

// recreate lets a user delete an object, and create it again when it is gone.
func (o *others) recreate(what string) {
	if u := o.takeAway(what); u != nil {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.returning = append(o.returning, u)
	}
}

// withhold lets a user delete an object, and create it again when the operator is idle.
func (o *others) withhold(f fault.Fault) {
	if u := o.takeAway(f.Of); u != nil {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.absent = append(o.absent, absence{u, f})
	}
}

// An absence is an object that is created again when the operator is idle.
type absence struct {
	object *unstructured.Unstructured
	fault  fault.Fault
}

// takeAway lets a user delete an object, and returns it as the user creates it again; nil if it is
// not there.
func (o *others) takeAway(what string) *unstructured.Unstructured {
	u, path := o.written(what)
	if u == nil {
		return nil
	}
	if _, err := o.cluster.Do(trial.UserActor, "kubectl", http.MethodDelete, path, "", nil); err != nil {
		o.trace.add("sim", "refused", err.Error())
		return nil
	}
	return u
}

// keepAway forgets what was to be created again, because its user is deleting it.
func (o *others) keepAway(t Target) {
	is := func(u *unstructured.Unstructured) bool {
		resource, _, err := o.cluster.ResourceFor(u.GroupVersionKind())
		return err == nil && t.names(resource, u)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.absent = slices.DeleteFunc(o.absent, func(a absence) bool { return is(a.object) })
	o.returning = slices.DeleteFunc(o.returning, is)
}

// makeWay deletes an object that has a name which the operator needs, as a person does who reads
// why it can't continue. What an earlier owner has left is the operator's once it has used it, and
// stays if nothing says that it is in the way.
func (o *others) makeWay(c occupant) {
	u := c.object
	if o.history.usesOrphan(u.GetUID()) {
		return
	}
	explained := len(c.owners) == 0
	o.oracles.see(func(j *judge.Judge) { explained = explained || slices.ContainsFunc(c.owners, j.Explains) })
	if !explained {
		o.trace.add("other", "write", cluster.OrphanStays)
		return
	}
	resource, _, err := o.cluster.ResourceFor(u.GroupVersionKind())
	if err != nil {
		return // its kind is gone
	}
	o.ask(http.MethodDelete, trial.PathOf(resource, u.GetNamespace(), u.GetName()), "application/json", map[string]any{
		"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background", "preconditions": map[string]any{"uid": u.GetUID()},
	})
}

// heal brings back what is absent until the operator is idle, and takes away what is in its way. It
// reports whether there was anything.
func (o *others) heal() bool {
	o.mu.Lock()
	absent, occupants := o.absent, o.occupants
	o.absent, o.occupants = nil, nil
	o.mu.Unlock()
	for _, c := range occupants {
		o.makeWay(c)
	}
	for _, a := range absent {
		if a.fault.Kind != fault.DeleteAndCreate {
			o.oracles.see(func(j *judge.Judge) { j.Stuck("the object "+a.fault.Of+" is missing", nil) })
		}
		o.trace.add("sim", "heal", a.fault.Of+" is there again")
		o.mu.Lock()
		o.returning = append(o.returning, a.object)
		o.mu.Unlock()
	}
	return len(absent)+len(occupants) > 0
}

// makeWayAfter takes away what has been in the way of the operator for so long, and reports whether
// there was anything: the person who reads why an operator can't continue does not wait for it to be
// idle, and one that counts its tries never is.
func (o *others) makeWayAfter(d time.Duration) bool {
	var late []occupant
	o.mu.Lock()
	o.occupants = slices.DeleteFunc(o.occupants, func(c occupant) bool {
		if o.history.clock.now()-c.since < d {
			return false
		}
		late = append(late, c)
		return true
	})
	o.mu.Unlock()
	for _, c := range late {
		o.makeWay(c)
	}
	return len(late) > 0
}

// createdAgain creates what a user wants to create again and what is gone by now. It reports whether all is
// there again.
func (o *others) createdAgain() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.returning = slices.DeleteFunc(o.returning, func(u *unstructured.Unstructured) bool {
		resource, _, err := o.cluster.ResourceFor(u.GroupVersionKind())
		if err != nil {
			return true // its kind is gone
		}
		_, err = o.cluster.Do(trial.UserActor, "kubectl", http.MethodPost, trial.PathOf(resource, u.GetNamespace(), ""), "application/json", u.Object)
		if err != nil && !apierrors.IsAlreadyExists(err) {
			o.trace.add("sim", "refused", "creating it again: "+err.Error())
		}
		return !apierrors.IsAlreadyExists(err)
	})
	return len(o.returning) == 0
}

// namesObject reports whether a write creates an object whose name the operator has chosen, if the
// object is not there.
func namesObject(r *apiserver.Request) bool {
	if r.Subresource != "" {
		return false
	}
	name := cluster.NameOf(r)
	return name != "" && (r.Verb == "create" && !strings.HasSuffix(name, "*") || cluster.IsApply(r))
}

// occupantOf returns the object of a stranger with the name of the one that a request creates: the
// same without anything that says that it is the operator's, and with other data. It is nil if the
// request can't be read.
func occupantOf(r *apiserver.Request) map[string]any {
	obj, ok := cluster.CreatedBy(r)
	if !ok {
		return nil
	}
	content := obj.Object
	metadata := map[string]any{"name": cluster.NameOf(r), "annotations": map[string]any{cluster.Foreign: "true"}}
	if r.Namespace != "" {
		metadata["namespace"] = r.Namespace
	}
	content["metadata"] = metadata
	delete(content, "status")
	switch fmt.Sprint(content["kind"]) {
	case "ConfigMap":
		delete(content, "binaryData")
		content["data"] = map[string]any{"another": "value"}
	case "Secret":
		delete(content, "stringData")
		content["data"] = map[string]any{"another": "dmFsdWU="}
		delete(content, "type") // it may ask for keys
	}
	return content
}

// touched is the annotation that another client adds. An operator may keep it or not, and pass it on.
const touched = cluster.Marks + "touched"
