// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/journal"
)

// core is the part of a request that does not depend on its type.
type core struct {
	run   *journal.Run // nil if nobody listens
	table failure.Table
	owner string // the field owner of writes that name no other

	// fence makes sure before the first write that the object is not older than it looks; nil if
	// that is not needed.
	fence func(ctx context.Context) error

	// What is known of objects before they are written: the reconciled one as it was read, what
	// earlier reconciles know of the others, and the API server, which may be nil.
	self      client.Object
	apiReader client.Reader
	began     map[uint64]factsOf // what others have changed back, as it was when the reconcile began

	mu     sync.Mutex // for all below: actions of a workflow may run beside one another
	hot    *hot       // nil when the reconcile has ended
	fenced bool
	stale  error
	writes []write
	// vain are writes that have changed nothing, before which the API server was asked because of a
	// suspicion.
	vain []write
	// refused says that the API server did not accept a write.
	refused bool
	// answers are what the API server has answered to writes of this reconcile.
	answers map[journal.Object]*snapshot
	reads   *versions // of what was read; nil if they are not wanted
	inputs  *inputs   // nil if they are not wanted
	// cached are the types that were read, and children what was written of these types.
	cached   map[reflect.Type]bool
	children []input

	own *core // where the writes are noted, if not here

	// object is that of the request. A step that writes it through the client has it saved instead,
	// by save: there is one write path. See target for one that reads it again.
	object client.Object
	save   func(ctx context.Context) error
}

// target returns what is read instead of obj: an empty object for that of the request, which keeps
// what steps have changed and what was saved. What other clients have changed meanwhile is merged
// when it is saved.
func (c *core) target(key client.ObjectKey, obj client.Object) client.Object {
	if c.object == nil || obj != c.object || key != client.ObjectKeyFromObject(obj) {
		return obj
	}
	return emptyOf(obj).(client.Object) //nolint:errcheck // of the same type
}

// saves reports whether a write of obj is one of the object of the request, which the engine saves.
// The error says that the write would change what is not the operator's. Patch is nil for an
// update.
func (c *core) saves(obj client.Object, sub string, patch client.Patch) (bool, error) {
	if c.object == nil || obj != c.object || sub != "" && sub != string(partStatus) {
		return false, nil
	}
	if patch == nil {
		return true, nil
	}
	if patch.Type() != types.MergePatchType && patch.Type() != types.StrategicMergePatchType {
		return false, nil // it has not been made from the object
	}
	var content map[string]any
	data, err := patch.Data(obj)
	if err != nil || json.Unmarshal(data, &content) != nil {
		return false, err
	}
	delete(content, string(partMetadata))
	delete(content, string(partStatus))
	if len(content) > 0 {
		return false, failure.Mark(fmt.Errorf("%w: %v of Request.Object is patched: patch a copy of the object if its user allows that", ErrReadOnlyField, fieldsOf(mustJSON(content))),
			failure.WithClass(failure.ClassTerminal))
	}
	return true, nil
}

// root returns the core that knows all writes of the reconcile.
func (c *core) root() *core {
	if c.own != nil {
		return c.own
	}
	return c
}

// mayWrite is asked before each write for the object. The answer is kept for the reconcile. Two
// writes beside one another may both ask.
func (c *core) mayWrite(ctx context.Context) error {
	if c.fence == nil {
		return nil
	}
	c.mu.Lock()
	fenced, stale := c.fenced, c.stale
	c.mu.Unlock()
	if fenced {
		return stale
	}
	stale = c.fence(ctx) // without the lock: it is a request
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fenced, c.stale = true, stale
	return stale
}

// wrote notes a write, and tells the journal. Those that have changed nothing are only told.
func (c *core) wrote(ctx context.Context, w *write, err error) {
	to := c.root()
	to.mu.Lock()
	switch {
	case err != nil:
		to.refused = true
	case w.noOp && w.verified:
		to.vain = append(to.vain, *w)
	case !w.noOp:
		to.writes = append(to.writes, *w)
	}
	if err == nil && w.after != nil {
		if to.answers == nil {
			to.answers = make(map[journal.Object]*snapshot)
		}
		to.answers[w.object] = w.after
	}
	to.mu.Unlock()
	if c.run != nil {
		c.run.Note(ctx, journal.Wrote{
			Step: stepFrom(ctx), Verb: w.verb, Object: w.object, Subresource: w.subresource, Fields: w.fields, NoOp: w.noOp && err == nil, Err: err,
		})
	}
}

// written returns the writes that have changed something.
func (c *core) written() []write {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.writes
}

// noteUncached notes that something was read that no cache has: a change of it is not noticed.
func (c *core) noteUncached() {
	if c.inputs != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.inputs.unknown = true
	}
}

func (c *core) inVain() []write {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.vain
}

// A recorder is a client that tells what goes through it.
type recorder struct {
	client.Client
	core *core
}

func (r *recorder) object(obj runtime.Object, key client.ObjectKey) journal.Object {
	gvk, err := r.Client.GroupVersionKindFor(obj)
	if err != nil { // a type that the scheme does not know: the call itself says so
		return journal.Object{Kind: "unknown", Namespace: key.Namespace, Name: key.Name}
	}
	return journal.ObjectOf(gvk.GroupKind(), key)
}

func (r *recorder) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	obj = r.core.target(key, obj)
	err := r.Client.Get(ctx, key, obj, opts...)
	r.core.noteRead(obj)
	r.core.mu.Lock()
	if r.core.inputs != nil {
		r.core.inputs.got(key, obj, err)
	}
	if err == nil {
		r.core.reads.note(obj)
	}
	r.core.mu.Unlock()
	r.read(ctx, obj, key, err, false)
	return err
}

func (r *recorder) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	err := r.Client.List(ctx, list, opts...)
	r.core.noteRead(list)
	r.core.mu.Lock()
	if r.core.inputs != nil {
		r.core.inputs.listed(list, opts, err)
	}
	if err == nil {
		r.core.reads.noteAll(list)
	}
	r.core.mu.Unlock()
	o := client.ListOptions{}
	r.read(ctx, list, client.ObjectKey{Namespace: o.ApplyOptions(opts).Namespace}, err, false)
	return err
}

func (r *recorder) read(ctx context.Context, obj runtime.Object, key client.ObjectKey, err error, live bool) {
	if r.core.run != nil {
		r.core.run.Note(ctx, journal.Read{Step: stepFrom(ctx), Object: r.object(obj, key), Live: live, Err: err})
	}
}

// begin prepares the note of a write: with what is known of the object before. Subresources that
// are no part of their object are not looked at.
func (r *recorder) begin(ctx context.Context, verb, sub string, obj client.Object) *write {
	key := client.ObjectKeyFromObject(obj)
	w := &write{verb: verb, subresource: sub, object: r.object(obj, key), owner: r.core.owner}
	if verb != "create" && isPartOf(sub) {
		w.before, w.verified = r.before(ctx, w, reflect.TypeOf(obj), key)
	}
	return w
}

// isPartOf reports whether what is written to a subresource is a part of the object.
func isPartOf(sub string) bool { return sub == "" || sub == "status" }

// before returns the object as it is before a write, nil if that is not known, and whether it was
// read from the API server: that is done only if a hot loop is suspected.
func (r *recorder) before(ctx context.Context, w *write, t reflect.Type, key client.ObjectKey) (before *snapshot, verified bool) {
	c := r.core.root()
	c.mu.Lock()
	before, own, cached := c.answers[w.object], c.self != nil && t == reflect.TypeOf(c.self) && key == client.ObjectKeyFromObject(c.self), c.cached[t]
	c.mu.Unlock()
	switch {
	case before != nil:
	case own:
		before = snapshotOf(c.self)
	case cached:
		w.cached = t
		before = r.cachedSnapshot(ctx, t, key)
	}
	suspected := false
	c.withTarget(w.object, func(known *target) {
		if known.newerThan(before) {
			before = nil
		}
		suspected = known.suspected(before)
	})
	if c.apiReader == nil || !suspected {
		return before, false
	}
	if live := r.liveSnapshot(ctx, w.object, key); live != nil {
		return live, true
	}
	return before, false
}

func (r *recorder) cachedSnapshot(ctx context.Context, t reflect.Type, key client.ObjectKey) *snapshot {
	obj := newOf(t)
	err := r.Client.Get(ctx, key, obj, sharing...)
	switch {
	case err == nil:
		return snapshotOf(obj)
	case apierrors.IsNotFound(err):
		return &snapshot{absent: true}
	default:
		return nil
	}
}

// liveSnapshot asks the API server, and records that in the journal.
func (r *recorder) liveSnapshot(ctx context.Context, object journal.Object, key client.ObjectKey) *snapshot {
	mapping, err := r.Client.RESTMapper().RESTMapping(schema.GroupKind{Group: object.Group, Kind: object.Kind})
	if err != nil {
		return nil
	}
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(mapping.GroupVersionKind)
	err = r.core.root().apiReader.Get(ctx, key, obj)
	r.read(ctx, obj, key, err, true)
	switch {
	case err == nil:
		return snapshotOf(obj)
	case apierrors.IsNotFound(err):
		return &snapshot{absent: true}
	default:
		return nil
	}
}

// end notes a write of an object. Old is the version that the step had.
func (r *recorder) end(ctx context.Context, w *write, obj client.Object, old string, dry bool, err error) {
	w.object = r.object(obj, client.ObjectKeyFromObject(obj)) // a created one may have got its name
	if err == nil {
		version := obj.GetResourceVersion()
		w.noOp = dry || version != "" && (version == old || r.core.knows(w, version))
		if !w.noOp && isPartOf(w.subresource) {
			w.after = snapshotOfAnswer(obj)
		}
		if !dry {
			r.noteTarget(w, obj, version)
		}
	}
	r.core.wrote(ctx, w, err)
}

// knows reports whether the object had a version before the write.
func (c *core) knows(w *write, version string) bool {
	if w.verb == "create" {
		return false
	}
	known := w.before != nil && w.before.version == version
	c.root().withTarget(w.object, func(t *target) { known = known || t.is(version) })
	return known
}

// withTarget calls f with what earlier reconciles know of an object, nil if that is nothing.
func (c *core) withTarget(object journal.Object, f func(*target)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(c.hot.known(object))
}

// letGo leaves what earlier reconciles know to the end of this one, which changes it: an action
// that has not ended in time finds nothing any more.
func (c *core) letGo() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hot = nil
}

// noteTarget remembers what a write has answered: the cache is to come to know it, and an object
// that was not read but found to be as it should is something that the reconcile depends on.
func (r *recorder) noteTarget(w *write, obj client.Object, version string) {
	if !isPartOf(w.subresource) {
		return
	}
	if !w.noOp {
		r.core.noteChild(reflect.TypeOf(obj), client.ObjectKeyFromObject(obj), version)
		return
	}
	r.core.dependsOn(reflect.TypeOf(obj), client.ObjectKeyFromObject(obj), version)
}

// dependsOn notes an object that a write has found as it should be.
func (c *core) dependsOn(t reflect.Type, key client.ObjectKey, version string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.inputs == nil || c.own != nil:
	case c.cached[t]:
		c.inputs.add(input{empty: newOf(t), key: key, version: version})
	default:
		c.inputs.unknown = true // no cache has it
	}
}

func (r *recorder) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	if err := r.core.mayWrite(ctx); err != nil {
		return err
	}
	o := (&client.CreateOptions{}).ApplyOptions(opts)
	w := r.begin(ctx, "create", "", obj).by(o.FieldManager)
	err := r.Client.Create(ctx, obj, opts...)
	r.end(ctx, w, obj, "", len(o.DryRun) > 0, err)
	return err
}

func (r *recorder) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	if saves, _ := r.core.saves(obj, "", nil); saves {
		return r.core.save(ctx)
	}
	if err := r.core.mayWrite(ctx); err != nil {
		return err
	}
	o := (&client.UpdateOptions{}).ApplyOptions(opts)
	w := r.begin(ctx, "update", "", obj).by(o.FieldManager)
	old := obj.GetResourceVersion()
	err := r.Client.Update(ctx, obj, opts...)
	r.end(ctx, w, obj, old, len(o.DryRun) > 0, err)
	return err
}

func (r *recorder) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	if saves, err := r.core.saves(obj, "", patch); err != nil {
		return err
	} else if saves {
		return r.core.save(ctx)
	}
	if err := r.core.mayWrite(ctx); err != nil {
		return err
	}
	frozen, fields, err := freeze(patch, obj)
	if err != nil {
		return err
	}
	o := (&client.PatchOptions{}).ApplyOptions(opts)
	w := r.begin(ctx, "patch", "", obj).by(o.FieldManager)
	w.fields = fields
	old := obj.GetResourceVersion()
	err = r.Client.Patch(ctx, obj, frozen, opts...)
	r.end(ctx, w, obj, old, len(o.DryRun) > 0, err)
	return err
}

// freeze makes the data of a patch once, before the answer of the API server changes the object
// that it is made from, and returns the paths that it changes.
func freeze(patch client.Patch, obj client.Object) (client.Patch, []string, error) {
	data, err := patch.Data(obj)
	if err != nil {
		return nil, nil, err
	}
	fields := fieldsOf
	if patch.Type() == types.JSONPatchType {
		fields = fieldsOfJSONPatch
	}
	return client.RawPatch(patch.Type(), data), fields(data), nil
}

func (r *recorder) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	if err := r.core.mayWrite(ctx); err != nil {
		return err
	}
	o := (&client.ApplyOptions{}).ApplyOptions(opts)
	applied := r.beginApply(ctx, "", obj)
	applied.by(o.FieldManager)
	err := r.Client.Apply(ctx, obj, opts...)
	r.endApply(ctx, applied, obj, len(o.DryRun) > 0, err)
	return err
}

// An application is a write of an applied configuration, which does not say of what type its object
// is.
type application struct {
	*write
	key client.ObjectKey
	t   reflect.Type // nil if the scheme does not know it
}

func (r *recorder) beginApply(ctx context.Context, sub string, obj runtime.ApplyConfiguration) application {
	w := &write{verb: "apply", subresource: sub, owner: r.core.owner}
	a := application{write: w}
	var head struct {
		Kind     string `json:"kind"`
		Version  string `json:"apiVersion"`
		Metadata struct{ Namespace, Name string }
	}
	data, err := json.Marshal(obj)
	if err != nil || json.Unmarshal(data, &head) != nil {
		return a // the call itself says so
	}
	a.key = client.ObjectKey{Namespace: head.Metadata.Namespace, Name: head.Metadata.Name}
	w.object = journal.Object{Group: groupOf(head.Version), Kind: head.Kind, Namespace: a.key.Namespace, Name: a.key.Name}
	w.fields = fieldsOf(data)
	if empty, err := r.Client.Scheme().New(schema.FromAPIVersionAndKind(head.Version, head.Kind)); err == nil {
		a.t = reflect.TypeOf(empty)
	}
	if isPartOf(sub) {
		w.before, w.verified = r.before(ctx, w, a.t, a.key)
	}
	return a
}

// endApply notes what was applied. The answer of the API server is in obj.
func (r *recorder) endApply(ctx context.Context, a application, obj runtime.ApplyConfiguration, dry bool, err error) {
	w := a.write
	if err == nil && isPartOf(w.subresource) {
		answer := snapshotOfAnswer(obj)
		w.noOp = dry || answer != nil && r.core.knows(w, answer.version)
		switch {
		case dry || answer == nil:
		case w.noOp:
			r.core.dependsOn(a.t, a.key, answer.version)
		default:
			w.after = answer
			r.core.noteChild(a.t, a.key, answer.version)
		}
	}
	r.core.wrote(ctx, w, err)
}

func (r *recorder) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	if err := r.core.mayWrite(ctx); err != nil {
		return err
	}
	o := (&client.DeleteOptions{}).ApplyOptions(opts)
	w := r.begin(ctx, "delete", "", obj)
	err := r.Client.Delete(ctx, obj, opts...)
	if apierrors.IsNotFound(err) {
		r.core.dependsOn(reflect.TypeOf(obj), client.ObjectKeyFromObject(obj), "")
		return err // nothing was there, and nothing was changed
	}
	version := obj.GetResourceVersion()
	if w.before != nil {
		version = w.before.version
	}
	terminating := !obj.GetDeletionTimestamp().IsZero() || w.before != nil && w.before.terminating
	if w.noOp = len(o.DryRun) > 0 || terminating; w.noOp && err == nil {
		r.core.dependsOn(reflect.TypeOf(obj), client.ObjectKeyFromObject(obj), version)
	}
	r.core.wrote(ctx, w, err)
	return err
}

// DeleteAllOf is noted as a write even if it matched nothing: its answer does not say.
func (r *recorder) DeleteAllOf(ctx context.Context, obj client.Object, opts ...client.DeleteAllOfOption) error {
	if err := r.core.mayWrite(ctx); err != nil {
		return err
	}
	o := (&client.DeleteAllOfOptions{}).ApplyOptions(opts)
	w := &write{verb: "deletecollection", object: r.object(obj, client.ObjectKeyFromObject(obj)), owner: r.core.owner}
	err := r.Client.DeleteAllOf(ctx, obj, opts...)
	w.noOp = len(o.DryRun) > 0
	r.core.wrote(ctx, w, err)
	return err
}

// by notes the field owner that a write names itself.
func (w *write) by(owner string) *write {
	if owner != "" {
		w.owner = owner
	}
	return w
}

func (r *recorder) Status() client.SubResourceWriter { return r.SubResource("status") }

func (r *recorder) SubResource(name string) client.SubResourceClient {
	return &subRecorder{r.Client.SubResource(name), r, name}
}

type subRecorder struct {
	client.SubResourceClient
	recorder *recorder
	name     string
}

func (s *subRecorder) Get(ctx context.Context, obj, sub client.Object, opts ...client.SubResourceGetOption) error {
	err := s.SubResourceClient.Get(ctx, obj, sub, opts...)
	s.recorder.core.noteUncached()
	s.recorder.read(ctx, obj, client.ObjectKeyFromObject(obj), err, true)
	return err
}

func (s *subRecorder) Create(ctx context.Context, obj, sub client.Object, opts ...client.SubResourceCreateOption) error {
	if err := s.recorder.core.mayWrite(ctx); err != nil {
		return err
	}
	o := (&client.SubResourceCreateOptions{}).ApplyOptions(opts)
	w := (&write{verb: "create", subresource: s.name, object: s.recorder.object(obj, client.ObjectKeyFromObject(obj)), owner: s.recorder.core.owner}).by(o.FieldManager)
	err := s.SubResourceClient.Create(ctx, obj, sub, opts...)
	w.noOp = len(o.DryRun) > 0
	s.recorder.core.wrote(ctx, w, err)
	return err
}

func (s *subRecorder) Update(ctx context.Context, obj client.Object, opts ...client.SubResourceUpdateOption) error {
	if saves, _ := s.recorder.core.saves(obj, s.name, nil); saves {
		return s.recorder.core.save(ctx)
	}
	if err := s.recorder.core.mayWrite(ctx); err != nil {
		return err
	}
	o := (&client.SubResourceUpdateOptions{}).ApplyOptions(opts)
	w := s.recorder.begin(ctx, "update", s.name, obj).by(o.FieldManager)
	old := obj.GetResourceVersion()
	err := s.SubResourceClient.Update(ctx, obj, opts...)
	s.end(ctx, w, obj, o.SubResourceBody, old, len(o.DryRun) > 0, err)
	return err
}

func (s *subRecorder) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	if saves, err := s.recorder.core.saves(obj, s.name, patch); err != nil {
		return err
	} else if saves {
		return s.recorder.core.save(ctx)
	}
	if err := s.recorder.core.mayWrite(ctx); err != nil {
		return err
	}
	o := (&client.SubResourcePatchOptions{}).ApplyOptions(opts)
	from := obj
	if o.SubResourceBody != nil {
		from = o.SubResourceBody
	}
	frozen, fields, err := freeze(patch, from)
	if err != nil {
		return err
	}
	w := s.recorder.begin(ctx, "patch", s.name, obj).by(o.FieldManager)
	w.fields = fields
	old := obj.GetResourceVersion()
	err = s.SubResourceClient.Patch(ctx, obj, frozen, opts...)
	s.end(ctx, w, obj, o.SubResourceBody, old, len(o.DryRun) > 0, err)
	return err
}

// end notes a write of a subresource. The answer to one with a body of its own is in that body: of
// the object nothing is known then.
func (s *subRecorder) end(ctx context.Context, w *write, obj, body client.Object, old string, dry bool, err error) {
	if body == nil && isPartOf(w.subresource) {
		s.recorder.end(ctx, w, obj, old, dry, err)
		return
	}
	w.before, w.noOp = nil, dry
	s.recorder.core.wrote(ctx, w, err)
}

func (s *subRecorder) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
	if err := s.recorder.core.mayWrite(ctx); err != nil {
		return err
	}
	o := (&client.SubResourceApplyOptions{}).ApplyOpts(opts)
	applied := s.recorder.beginApply(ctx, s.name, obj)
	applied.by(o.FieldManager)
	err := s.SubResourceClient.Apply(ctx, obj, opts...)
	s.recorder.endApply(ctx, applied, obj, len(o.DryRun) > 0, err)
	return err
}

// A liveRecorder is a reader of the API server that tells what is read.
type liveRecorder struct {
	client.Reader
	recorder *recorder
}

func (l *liveRecorder) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	obj = l.recorder.core.target(key, obj)
	err := l.Reader.Get(ctx, key, obj, opts...)
	l.recorder.core.noteUncached()
	l.recorder.read(ctx, obj, key, err, true)
	return err
}

func (l *liveRecorder) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	err := l.Reader.List(ctx, list, opts...)
	l.recorder.core.noteUncached()
	o := client.ListOptions{}
	l.recorder.read(ctx, list, client.ObjectKey{Namespace: o.ApplyOptions(opts).Namespace}, err, true)
	return err
}

var (
	_ client.Client            = (*recorder)(nil)
	_ client.SubResourceClient = (*subRecorder)(nil)
)
