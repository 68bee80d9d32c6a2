// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package track

import (
	"context"
	"encoding/json"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/journal"
)

// Apply applies a configuration.
func (r *Client) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	if err := r.record.MayWrite(ctx); err != nil {
		return err
	}
	o := (&client.ApplyOptions{}).ApplyOptions(opts)
	applied := r.beginApply(ctx, "", obj)
	applied.by(o.FieldManager)
	err := r.Client.Apply(ctx, obj, opts...)
	r.endApply(ctx, applied, obj, len(o.DryRun) > 0, err)
	return err
}

// An application is a write of an applied configuration, whose Go type is not that of its object.
type application struct {
	*Write
	key client.ObjectKey
	t   reflect.Type // nil if the scheme does not know it
}

func (r *Client) beginApply(ctx context.Context, sub string, obj runtime.ApplyConfiguration) application {
	w := &Write{Verb: "apply", Subresource: sub, Owner: r.record.Owner}
	a := application{Write: w}
	version, kind, key, sent, ok := describeConfiguration(obj)
	if !ok {
		return a // the call itself fails
	}
	a.key, w.Sent = key, sent
	w.Object = journal.Object{Group: GroupOf(version), Kind: kind, Namespace: key.Namespace, Name: key.Name}
	if empty, err := r.Client.Scheme().New(schema.FromAPIVersionAndKind(version, kind)); err == nil {
		a.t = reflect.TypeOf(empty)
	}
	if IsPartOf(sub) {
		w.Before, w.Verified = r.before(ctx, w, a.t, a.key)
	}
	return a
}

// describeConfiguration returns what a configuration applies to, and what it sends. The answer of the
// API server will replace it.
func describeConfiguration(obj runtime.ApplyConfiguration) (version, kind string, key client.ObjectKey, sent *Sent, ok bool) {
	if o, is := obj.(interface {
		client.Object
		UnstructuredContent() map[string]any
	}); is {
		version, kind = o.GetObjectKind().GroupVersionKind().ToAPIVersionAndKind()
		return version, kind, client.ObjectKeyFromObject(o), SentPaths(Fields(o.UnstructuredContent())...), true
	}
	var head struct {
		Kind     string `json:"kind"`
		Version  string `json:"apiVersion"`
		Metadata struct{ Namespace, Name string }
	}
	data, err := json.Marshal(obj)
	if err != nil || json.Unmarshal(data, &head) != nil {
		return "", "", key, nil, false
	}
	key = client.ObjectKey{Namespace: head.Metadata.Namespace, Name: head.Metadata.Name}
	return head.Version, head.Kind, key, &Sent{find: func() []string { return fieldsOf(data) }}, true
}

// endApply notes what was applied. The answer of the API server is in obj.
func (r *Client) endApply(ctx context.Context, a application, obj runtime.ApplyConfiguration, dry bool, err error) {
	w := a.Write
	if err == nil && IsPartOf(w.Subresource) {
		answer := snapshotOfAnswer(obj, false)
		w.NoOp = dry || answer != nil && r.record.knows(w, answer.Version)
		switch {
		case dry || answer == nil:
		case w.NoOp:
			r.record.dependsOn(a.t, a.key, answer.Version)
		default:
			w.After = answer
			w.Input = r.record.noteChild(a.t, a.key, answer.Version)
		}
	}
	r.record.wrote(ctx, w, err)
}
