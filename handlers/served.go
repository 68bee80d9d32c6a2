// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	"github.com/ctrlkit/ctrlkit/journal"
)

// served returns an error if the API server does not have a kind.
func (r *Registry) served(gvk schema.GroupVersionKind, live bool) error {
	if !live {
		_, err := r.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		return err
	}
	d, err := r.discovery()
	if err != nil {
		return err
	}
	resources, err := d.ServerResourcesForGroupVersion(gvk.GroupVersion().String())
	switch {
	case apierrors.IsNotFound(err):
		return errNotServed
	case err != nil:
		return err
	case !slices.ContainsFunc(resources.APIResources, func(a metav1.APIResource) bool { return a.Kind == gvk.Kind }):
		return errNotServed
	}
	return nil
}

// noteKind records in the journal that a kind is missing or unreadable, or is not any more if the
// cause is empty: as an object of the kind without a name, which explains all objects of it.
func (r *Registry) noteKind(key kindKey, cause string) {
	if r.observer == nil {
		return
	}
	run := journal.NewRun(r.observer, uuid.NewUUID(), r.controllerName(key), journal.ObjectOf(key.gvk.GroupKind(), client.ObjectKey{}))
	run.Note(context.Background(), journal.Started{Causes: []journal.Cause{{Kind: journal.CauseStart, Times: 1}}})
	result := journal.ResultDone
	if cause != "" {
		run.Note(context.Background(), journal.Gated{Reason: "KindNotWatched", Message: cause})
		result = journal.ResultPaused
	}
	run.Note(context.Background(), journal.Finished{Result: result})
}

// watchFailed is called when a list or a watch of the cache fails. The error does not say of which
// kind it is, only of which type: a kind that has disappeared is looked for among all of the type.
func (r *Registry) watchFailed(description string, err error) {
	r.mu.Lock()
	var suspects []*feed
	for _, f := range r.feeds {
		if f.description() == description || f.key.String() == description {
			suspects = append(suspects, f)
		}
	}
	r.mu.Unlock()
	for _, f := range suspects {
		f.noteError(err)
		if apierrors.IsNotFound(err) || apimeta.IsNoMatchError(err) {
			go f.suspect() // it is called by the informer, which would wait
		}
	}
}

// A KindStatus says how the registry knows the objects of a kind.
type KindStatus struct {
	// Kind is the kind, Form "unstructured" or "metadata" for objects that have no Go type of
	// their own.
	Kind schema.GroupVersionKind
	Form string
	// State is the state of its objects; Message says what it waits for.
	State   State
	Message string
	// Handlers are the names of the handlers, in the order in which they are called. A kind that is
	// only watched for handlers of others has none.
	Handlers []string
}

// Kinds returns the kinds that have handlers, or are watched for some, in the order of their names.
func (r *Registry) Kinds() []KindStatus {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]KindStatus, 0, len(r.feeds))
	for key, f := range r.feeds {
		s := KindStatus{Kind: key.gvk, Form: string(key.form)}
		s.State, s.Message = f.status()
		if k := r.kinds[key]; k != nil {
			for _, e := range *k.handlers.Load() {
				s.Handlers = append(s.Handlers, e.name)
			}
		}
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b KindStatus) int {
		return strings.Compare(a.Kind.String()+a.Form, b.Kind.String()+b.Form)
	})
	return all
}

// Ready is a check for Manager.AddReadyzCheck: its error names the kinds whose objects are not
// known, and why. Without leader election of its own the answer of a follower is that of a process
// that has not started its handlers: it is ready.
func (r *Registry) Ready(*http.Request) error {
	r.mu.Lock()
	started := r.ctx != nil
	r.mu.Unlock()
	if !started {
		return nil
	}
	var errs []error
	for _, k := range r.Kinds() {
		if k.State != StateRunning {
			errs = append(errs, fmt.Errorf("%s: %s: %s", k.Kind.GroupKind(), strings.ToLower(string(k.State)), k.Message))
		}
	}
	return errors.Join(errs...)
}

var _ healthz.Checker = (*Registry)(nil).Ready
