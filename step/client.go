package step

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/journal"
)

// core is the part of a request that does not depend on its type.
type core struct {
	run   *journal.Run // nil if nobody listens
	table failure.Table

	// fence makes sure before the first write that the object is not older than it looks; nil if that is not needed.
	fence func(ctx context.Context) error

	mu     sync.Mutex // for all below: actions of a workflow may run beside one another
	fenced bool
	stale  error
	writes []write
	inputs *inputs // nil if they are not wanted
	// cached are the types that were read, and children what was written of these types.
	cached   map[reflect.Type]bool
	children []input

	own *core // where the writes are noted, if not here

	// object is that of the request. A step that writes it through the client has it saved instead, by save: there is one write path.
	// See target for one that reads it again.
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

// saves reports whether a write of obj is one of the object of the request, which the engine saves. The error says that the write would change what is not the
// operator's. Patch is nil for an update.
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
		return false, failure.As(fmt.Errorf("%w: %v of Request.Object is patched: patch a copy of the object if its user allows that", ErrNotOurs, fieldsOf(mustJSON(content))),
			failure.OfClass(failure.Terminal))
	}
	return true, nil
}

// A write is something that was written to the cluster in a reconcile.
type write struct {
	verb, subresource string
	object            journal.Object
	fields            []string
	content           string // what was written, as far as it is known
}

// mayWrite is asked before each write for the object. The answer is kept for the reconcile. Two writes beside one another may both ask.
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

// wrote notes a write. Only those that the API server accepted count for hot loops.
func (c *core) wrote(ctx context.Context, w write, err error) {
	if err == nil {
		to := c
		if c.own != nil {
			to = c.own
		}
		to.mu.Lock()
		to.writes = append(to.writes, w)
		to.mu.Unlock()
	}
	if c.run != nil {
		c.run.Note(ctx, journal.Wrote{Step: stepFrom(ctx), Verb: w.verb, Object: w.object, Subresource: w.subresource, Fields: w.fields, Err: err})
	}
}

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
	if in := r.core.inputs; in != nil {
		r.core.mu.Lock()
		in.got(key, obj, err)
		r.core.mu.Unlock()
	}
	r.read(ctx, obj, key, err, false)
	return err
}

func (r *recorder) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	err := r.Client.List(ctx, list, opts...)
	r.core.noteRead(list)
	if in := r.core.inputs; in != nil {
		r.core.mu.Lock()
		in.listed(list, opts, err)
		r.core.mu.Unlock()
	}
	o := client.ListOptions{}
	r.read(ctx, list, client.ObjectKey{Namespace: o.ApplyOptions(opts).Namespace}, err, false)
	return err
}

func (r *recorder) read(ctx context.Context, obj runtime.Object, key client.ObjectKey, err error, live bool) {
	if r.core.run != nil {
		r.core.run.Note(ctx, journal.Read{Step: stepFrom(ctx), Object: r.object(obj, key), Live: live, Err: err})
	}
}

func (r *recorder) note(ctx context.Context, verb, sub string, obj client.Object, patch client.Patch, err error) {
	w := write{verb: verb, subresource: sub, object: r.object(obj, client.ObjectKeyFromObject(obj))}
	if patch != nil {
		w.content = string(patchData(patch, obj))
		w.fields = fieldsOf([]byte(w.content))
	}
	if err == nil && (verb == "create" || verb == "update" || verb == "patch") {
		r.core.noteChild(obj)
	}
	r.core.wrote(ctx, w, err)
}

// noteWhole notes a write of a whole object. Content is the object as it was sent.
func (r *recorder) noteWhole(ctx context.Context, verb, sub string, obj client.Object, content string, err error) {
	if err == nil {
		r.core.noteChild(obj)
	}
	r.core.wrote(ctx, write{verb: verb, subresource: sub, object: r.object(obj, client.ObjectKeyFromObject(obj)), content: content}, err)
}

// wholeOf returns what a write of a whole object writes: without what the API server keeps, which is different each time.
func wholeOf(obj client.Object, sub string) string {
	data, err := json.Marshal(obj)
	var root map[string]any
	if err != nil || json.Unmarshal(data, &root) != nil {
		return ""
	}
	if metadata, ok := root["metadata"].(map[string]any); ok {
		for _, key := range []string{"resourceVersion", "uid", "generation", "managedFields", "creationTimestamp"} {
			delete(metadata, key)
		}
	}
	if sub == "" {
		delete(root, "status")
	}
	return string(mustJSON(root))
}

// patchData returns what a patch writes. It is asked for after the write, when a patch that is made from two objects would be empty: only
// those with data of their own are known.
func patchData(patch client.Patch, obj client.Object) []byte {
	if patch.Type() == types.JSONPatchType {
		return nil
	}
	data, err := patch.Data(obj)
	if err != nil || !json.Valid(data) {
		return nil
	}
	return data
}

func (r *recorder) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	if err := r.core.mayWrite(ctx); err != nil {
		return err
	}
	content := wholeOf(obj, "")
	err := r.Client.Create(ctx, obj, opts...)
	r.noteWhole(ctx, "create", "", obj, content, err)
	return err
}

func (r *recorder) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	if saves, _ := r.core.saves(obj, "", nil); saves {
		return r.core.save(ctx)
	}
	if err := r.core.mayWrite(ctx); err != nil {
		return err
	}
	before, content := obj.GetResourceVersion(), wholeOf(obj, "")
	err := r.Client.Update(ctx, obj, opts...)
	if err == nil && before != "" && before == obj.GetResourceVersion() {
		return nil // the API server found that it changes nothing
	}
	r.noteWhole(ctx, "update", "", obj, content, err)
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
	frozen, err := freeze(patch, obj)
	if err != nil {
		return err
	}
	before := obj.GetResourceVersion()
	err = r.Client.Patch(ctx, obj, frozen, opts...)
	if err == nil && before != "" && before == obj.GetResourceVersion() {
		return nil
	}
	r.note(ctx, "patch", "", obj, frozen, err)
	return err
}

// freeze makes the data of a patch once, before the answer of the API server changes the object that it is made from.
func freeze(patch client.Patch, obj client.Object) (client.Patch, error) {
	data, err := patch.Data(obj)
	if err != nil {
		return nil, err
	}
	return client.RawPatch(patch.Type(), data), nil
}

func (r *recorder) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	if err := r.core.mayWrite(ctx); err != nil {
		return err
	}
	err := r.Client.Apply(ctx, obj, opts...)
	r.noteApply(ctx, "", obj, err)
	return err
}

func (r *recorder) noteApply(ctx context.Context, sub string, obj runtime.ApplyConfiguration, err error) {
	data, jsonErr := json.Marshal(obj)
	w := write{verb: "apply", subresource: sub}
	var head struct {
		Kind     string `json:"kind"`
		Version  string `json:"apiVersion"`
		Metadata struct{ Namespace, Name string }
	}
	if jsonErr == nil && json.Unmarshal(data, &head) == nil {
		w.object = journal.Object{Group: groupOf(head.Version), Kind: head.Kind, Namespace: head.Metadata.Namespace, Name: head.Metadata.Name}
		w.content = string(data)
		w.fields = fieldsOf(data)
	}
	r.core.wrote(ctx, w, err)
}

func (r *recorder) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	if err := r.core.mayWrite(ctx); err != nil {
		return err
	}
	err := r.Client.Delete(ctx, obj, opts...)
	if apierrors.IsNotFound(err) {
		return err // nothing was there, and nothing was changed
	}
	r.note(ctx, "delete", "", obj, nil, err)
	return err
}

func (r *recorder) DeleteAllOf(ctx context.Context, obj client.Object, opts ...client.DeleteAllOfOption) error {
	if err := r.core.mayWrite(ctx); err != nil {
		return err
	}
	err := r.Client.DeleteAllOf(ctx, obj, opts...)
	r.note(ctx, "deletecollection", "", obj, nil, err)
	return err
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
	err := s.SubResourceClient.Create(ctx, obj, sub, opts...)
	s.recorder.note(ctx, "create", s.name, obj, nil, err)
	return err
}

func (s *subRecorder) Update(ctx context.Context, obj client.Object, opts ...client.SubResourceUpdateOption) error {
	if saves, _ := s.recorder.core.saves(obj, s.name, nil); saves {
		return s.recorder.core.save(ctx)
	}
	if err := s.recorder.core.mayWrite(ctx); err != nil {
		return err
	}
	content := wholeOf(obj, s.name)
	err := s.SubResourceClient.Update(ctx, obj, opts...)
	s.recorder.noteWhole(ctx, "update", s.name, obj, content, err)
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
	frozen, err := freeze(patch, obj)
	if err != nil {
		return err
	}
	err = s.SubResourceClient.Patch(ctx, obj, frozen, opts...)
	s.recorder.note(ctx, "patch", s.name, obj, frozen, err)
	return err
}

func (s *subRecorder) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
	if err := s.recorder.core.mayWrite(ctx); err != nil {
		return err
	}
	err := s.SubResourceClient.Apply(ctx, obj, opts...)
	s.recorder.noteApply(ctx, s.name, obj, err)
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
