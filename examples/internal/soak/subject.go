// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/controlplane"
	cronjobv1 "github.com/ctrlkit/ctrlkit/examples/01_cronjob/api/v1"
	simplev1 "github.com/ctrlkit/ctrlkit/examples/02_simple/api/v1"
	rwexternalv1 "github.com/ctrlkit/ctrlkit/examples/03_rwexternal/api/v1"
	websitev1 "github.com/ctrlkit/ctrlkit/examples/04_website/api/v1"
	userv1 "github.com/ctrlkit/ctrlkit/examples/05_user/api/v1"
	streamv1 "github.com/ctrlkit/ctrlkit/examples/06_stream/api/v1"
)

const (
	namespace        = "soak"         // of the objects
	outputsNamespace = "soak-outputs" // of what they write elsewhere
)

// An example is an operator that can be soaked.
type example struct {
	name      string // of its directory, and so of its package
	account   string // its ServiceAccount is account-operator in the namespace account-system
	lease     string // of its leader
	parts     controlplane.Parts
	scheduled bool // it works at times, and not because of edits
	subject   func(*soaking) subject
	// startSystem starts what the operator manages outside of the cluster, if there is something.
	startSystem func() (*system, error)
}

var examples = []example{
	{name: "01_cronjob", account: "cronjob", lease: "cronjob.batch.ctrlkit.dev", parts: controlplane.AllParts, scheduled: true, subject: func(s *soaking) subject { return newSchedule(s.user, s.options) }},
	{name: "02_simple", account: "simple", lease: "simple.demo.ctrlkit.dev", subject: func(s *soaking) subject { return newSimples(s.user, s.options) }},
	{name: "03_rwexternal", account: "rwexternal", lease: "rwexternal.demo.ctrlkit.dev", subject: func(s *soaking) subject { return newRWExternals(s.user, s.options) }},
	{name: "04_website", account: "website", lease: "website.web.ctrlkit.dev", parts: controlplane.AllParts, subject: func(s *soaking) subject { return newWebsites(s.user, s.options) }},
	{
		name: "05_user", account: "mysql", lease: "mysql.ctrlkit.dev", parts: controlplane.PartControllerManager, startSystem: startMySQL,
		subject: func(s *soaking) subject { return newUsers(s.user, s.options, s.system) },
	},
	{
		name: "06_stream", account: "stream", lease: "stream.nats.ctrlkit.dev", parts: controlplane.PartControllerManager, startSystem: startNATS,
		subject: func(s *soaking) subject { return newStreams(s.user, s.options, s.system) },
	},
}

// A subject holds the objects of an operator, and the model of how they should be.
type subject interface {
	// create creates the objects. Watches that it starts end with ctx.
	create(ctx context.Context) error
	// edits returns the edits of the objects in the chaos. It is called once. From then on, the
	// model describes the cluster after the last edit.
	edits() []edit
	// compare compares the cluster with the model. Unless steadySince is zero, Ready must not have
	// changed since then.
	compare(ctx context.Context, steadySince time.Time) ([]check, error)
	// deleteAll deletes the objects.
	deleteAll(ctx context.Context) error
	// remaining returns what remains after deleteAll and should not.
	remaining(ctx context.Context) ([]violation, error)
	// progress describes what has happened so far, in a few words.
	progress() string
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, cronjobv1.AddToScheme, simplev1.AddToScheme, rwexternalv1.AddToScheme,
		websitev1.AddToScheme, userv1.AddToScheme, streamv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("registering types: %w", err)
		}
	}
	return scheme, nil
}

// readiness is what Ready should be.
type readiness struct {
	ready  bool
	reason string // why not
}

// problem describes how conditions differ from it. It returns "" if they do not.
func (want readiness) problem(conditions []metav1.Condition, generation int64, steadySince time.Time) string {
	got := meta.FindStatusCondition(conditions, condition.Ready)
	if got == nil {
		return "it has no condition Ready"
	}
	is := fmt.Sprintf("Ready is %s since %s, reason %s, message %q", got.Status, clock(got.LastTransitionTime.Time), got.Reason, got.Message)
	switch {
	case want.ready && got.Status != metav1.ConditionTrue:
		return is + ", want True"
	case !want.ready && (got.Status == metav1.ConditionTrue || got.Reason != want.reason):
		return is + ", want that it is not True because of " + want.reason
	case got.ObservedGeneration != generation:
		return fmt.Sprintf("Ready is about generation %d, want %d", got.ObservedGeneration, generation)
	case !steadySince.IsZero() && got.LastTransitionTime.After(steadySince):
		return fmt.Sprintf("%s, want no change since %s: nothing was done to it", is, clock(steadySince))
	}
	return ""
}

// listed returns the objects of a list in our namespaces as violations.
func listed(ctx context.Context, user client.Client, list client.ObjectList) ([]violation, error) {
	var found []violation
	for _, ns := range []string{namespace, outputsNamespace} {
		if err := user.List(ctx, list, client.InNamespace(ns)); err != nil {
			return nil, fmt.Errorf("listing the remaining objects: %w", err)
		}
		err := meta.EachListItem(list, func(item runtime.Object) error {
			obj, ok := item.(client.Object)
			if !ok {
				return fmt.Errorf("%T is not an object", item)
			}
			found = append(found, leftover(obj))
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// leftover returns the violation of an object that should not exist.
func leftover(obj client.Object) violation {
	kind := strings.TrimPrefix(fmt.Sprintf("%T", obj), "*")
	if i := strings.LastIndexByte(kind, '.'); i >= 0 {
		kind = kind[i+1:]
	}
	evidence := "it should not exist"
	if since := obj.GetDeletionTimestamp(); since != nil {
		evidence += fmt.Sprintf("; it is being deleted since %s, and has the finalizers %q", clock(since.Time), obj.GetFinalizers())
	}
	return violation{object: fmt.Sprintf("%s %s/%s", kind, obj.GetNamespace(), obj.GetName()), lane: noLane, evidence: evidence}
}

// create makes an object, also if the API server is not ready for its kind yet, or if one of its
// name is still being deleted.
func create(ctx context.Context, user client.Client, obj client.Object) error {
	for {
		attempt := obj.DeepCopyObject().(client.Object) //nolint:errcheck // it is what was copied
		err := retry.OnError(wait.Backoff{Duration: 100 * time.Millisecond, Steps: 100}, apierrors.IsServiceUnavailable, func() error {
			return user.Create(ctx, attempt)
		})
		if !apierrors.IsAlreadyExists(err) {
			return err
		}
		if sleepUntil(ctx, time.Now().Add(100*time.Millisecond)) != nil {
			return fmt.Errorf("an object of that name still exists: %w", err)
		}
	}
}

// applyFiles creates what is described below directories, as far as there are such directories.
func applyFiles(ctx context.Context, user client.Client, dirs ...string) error {
	for _, dir := range dirs {
		files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
		if err != nil {
			return err
		}
		for _, file := range files {
			if err := applyFile(ctx, user, file); err != nil {
				return fmt.Errorf("applying %s: %w", file, err)
			}
		}
	}
	return nil
}

func applyFile(ctx context.Context, user client.Client, file string) error {
	content, err := os.Open(file)
	if err != nil {
		return err
	}
	defer content.Close() //nolint:errcheck // only read from
	for documents := yaml.NewYAMLOrJSONDecoder(content, 4096); ; {
		var obj unstructured.Unstructured
		if err := documents.Decode(&obj); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := create(ctx, user, &obj); err != nil {
			return err
		}
	}
}
