// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/external"
)

// A lister counts the lists of Secrets, and what they have returned.
type lister struct {
	client.Client
	lists, secrets int
}

func (l *lister) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	err := l.Client.List(ctx, list, options...)
	if found, is := list.(*corev1.SecretList); is && err == nil {
		l.lists++
		l.secrets += len(found.Items)
	}
	return err
}

// A poll looks for nothing to publish as long as neither the details nor the Secret have changed. Who
// edits or deletes the Secret has it repaired.
func TestUnchangedSecret(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(d *siloDesk, secret *corev1.Secret)
		lists  int
	}{
		"nothing":   {change: func(*siloDesk, *corev1.Secret) {}},
		"a restart": {change: func(d *siloDesk, _ *corev1.Secret) { d.restart() }, lists: 1},
		"an edit": {change: func(d *siloDesk, secret *corev1.Secret) {
			secret.Data["password"] = []byte("theirs")
			d.must(d.client.Update(d.t.Context(), secret))
		}, lists: 1},
		"an edit of the label of a stranger": {change: func(d *siloDesk, secret *corev1.Secret) {
			secret.Labels = map[string]string{"theirs": "1"}
			d.must(d.client.Update(d.t.Context(), secret))
		}, lists: 1},
		"a deletion": {change: func(d *siloDesk, secret *corev1.Secret) { d.must(d.client.Delete(d.t.Context(), secret)) }, lists: 1},
		"another in its place": {change: func(d *siloDesk, secret *corev1.Secret) {
			d.must(d.client.Delete(d.t.Context(), secret.DeepCopy()))
			secret.ResourceVersion, secret.UID, secret.Data["password"] = "", "", []byte("theirs")
			d.must(d.client.Create(d.t.Context(), secret))
		}, lists: 1},
		"another password": {change: func(d *siloDesk, _ *corev1.Secret) {
			d.store.seen = func(o *external.Observation) {
				if o.Connection != nil {
					o.Connection["password"] = []byte("rotated")
				}
			}
		}, lists: 1},
	} {
		onDesk(t, name, byName(), func(t *testing.T, d *siloDesk) {
			l := &lister{Client: d.client}
			d.client = l
			d.publishing()
			d.settle()
			if l.lists != 0 {
				t.Errorf("%d lists of Secrets for a new object", l.lists)
			}
			tt.change(d, d.secret())
			d.passes()
			if l.lists != tt.lists {
				t.Errorf("%d lists of Secrets, want %d", l.lists, tt.lists)
			}
			for range 3 {
				d.passes()
			}
			if l.lists != tt.lists {
				t.Errorf("%d lists of Secrets after more polls, want %d", l.lists, tt.lists)
			}
			want := secretText
			if name == "another password" {
				want = "rotated"
			}
			if got := d.secret(); got == nil || string(got.Data["password"]) != want {
				t.Errorf("published is %v", got)
			}
		})
	}
}
