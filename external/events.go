// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/condition"
)

// Reasons of Normal events: one when the resource is seen as a call was to make it, and, if that is not
// so within the reconcile of the first call, one that it has begun. Further attempts of a call that
// fails have none.
const (
	reasonCreating = "Creating"
	reasonCreated  = "Created"
	reasonUpdating = "Updating"
	reasonUpdated  = "Updated"
	reasonDeleting = "Deleting"
	reasonDeleted  = "Deleted"
)

// A report is the events of a call.
type report struct {
	call, action string
	begins, ends string // the reasons
	past         string
	// restarts says that the condition of the call shows that we have called, also before a restart:
	// no system creates or deletes by itself.
	restarts bool
}

var reports = []report{
	{"create", "Create", reasonCreating, reasonCreated, "created", true},
	{"update", "Update", reasonUpdating, reasonUpdated, "updated", false},
	{"delete", "Delete", reasonDeleting, reasonDeleted, "deleted", true},
}

// A reporter records the events of a session.
type reporter[T client.Object] struct{ *session[T] }

// call returns a call whose beginning is noted.
func (s reporter[T]) call(what string, call func(ctx context.Context) error) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		for _, a := range reports {
			if a.call == what {
				s.began(a)
			}
		}
		return call(ctx)
	}
}

func (s reporter[T]) began(a report) {
	obj := s.req.Object
	if a.call == "create" && !obj.GetDeletionTimestamp().IsZero() {
		return // it finds what was created before
	}
	before, _ := s.reported.Swap(obj.GetUID(), a.call)
	if before == a.call || s.wasInProgress(a) {
		return
	}
	s.req.Logger.Info("A call of the external system begins", "call", a.call, "id", s.id)
	s.unfinished() // it is another call
	s.begun = &a
}

// unfinished reports a call that has begun in this reconcile, and whose effect was not observed.
func (s reporter[T]) unfinished() {
	if a := s.begun; a != nil {
		s.event(a.begins, a.action, "is being "+a.past)
	}
	s.begun = nil
}

// ended reports the end of a call whose effect is observed, in this reconcile or a later one, and the
// beginning of one that has not ended.
func (s reporter[T]) ended() {
	defer s.unfinished()
	uid := s.req.Object.GetUID()
	called, _ := s.reported.Load(uid)
	deleting := !s.req.Object.GetDeletionTimestamp().IsZero()
	for _, a := range reports {
		switch {
		case called != a.call && (called != nil || !a.restarts || !s.wasInProgress(a)), deleting != (a.call == "delete"):
		case deleting && s.seen.State == Absent, !deleting && s.seen.State == UpToDate:
			s.reported.Delete(uid)
			s.req.Logger.Info("The external system has done what was called", "call", a.call, "id", s.id)
			if s.begun != nil && s.begun.call == a.call {
				s.begun = nil
			}
			s.event(a.ends, a.action, "is "+a.past)
			return
		}
	}
	if deleting && s.seen.State == Absent {
		s.reported.Delete(uid)
	}
}

// wasInProgress reports whether the conditions have shown, before this reconcile, that the call was
// made, or has failed.
func (s reporter[T]) wasInProgress(a report) bool {
	all, err := condition.Of(s.req.Snapshot())
	return err == nil && meta.IsStatusConditionTrue(all, changes[a.call])
}

func (s reporter[T]) event(reason, action, text string) {
	s.req.Event(corev1.EventTypeNormal, reason, action, "%s %s", strings.TrimSpace("The resource "+s.id), text)
}
