// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package explanation_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/internal/explanation"
	"github.com/ctrlkit/ctrlkit/step"
)

var update = flag.Bool("update", false, "rewrite the golden files, and fail")

// scenes are what happened to the Database shop/db, each named like its golden file.
var scenes = map[string]func(*testing.T) *explanation.Explanation{
	"missing-secret": func(t *testing.T) *explanation.Explanation {
		s := newScene(t, readPassword{}, done("CreateDatabase"))
		s.create()
		s.settle()
		time.Sleep(12 * time.Minute)
		return s.explain()
	},
	"unwatched-secret": func(t *testing.T) *explanation.Explanation {
		s := newScene(t, readPassword{}, done("CreateDatabase"))
		if _, err := s.engine.Wire(&Database{}); err != nil {
			t.Fatal(err)
		}
		s.create()
		s.settle()
		time.Sleep(12 * time.Minute)
		return s.explain()
	},
	"poll": func(t *testing.T) *explanation.Explanation {
		s := newScene(t, returns("CreateDatabase", func() (ctrl.Result, error) { return ctrlkit.PollFor("database db to be available", 10*time.Second) }))
		s.create()
		for range 20 {
			s.reconcile()
			time.Sleep(10 * time.Second)
		}
		s.reconcile()
		time.Sleep(3 * time.Second)
		return s.explain()
	},
	"failing-step": func(t *testing.T) *explanation.Explanation {
		s := newScene(t, done("ReadPassword"), fails("CreateDatabase", errForbidden), done("Publish"))
		s.create()
		for i := range 3 {
			time.Sleep(time.Duration(i) * 30 * time.Second)
			s.reconcile()
		}
		time.Sleep(2 * time.Second)
		return s.explain()
	},
	"set": func(t *testing.T) *explanation.Explanation {
		s := newScene(t, parts(), done("Publish"))
		s.create()
		s.settle()
		time.Sleep(time.Minute)
		s.start() // it writes nothing: the objects are as they were applied, in no particular order
		s.settle()
		time.Sleep(12 * time.Second)
		return s.explain()
	},
	"set-refused": func(t *testing.T) *explanation.Explanation {
		s := newScene(t, parts(), done("Publish"))
		foreign := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "settings"}}
		if err := s.client.Create(s.ctx(), foreign, client.FieldOwner("helm")); err != nil {
			t.Fatal(err)
		}
		s.create()
		s.settle()
		time.Sleep(time.Minute)
		s.start()
		s.settle()
		time.Sleep(2 * time.Second)
		return s.explain()
	},
	"own-remedy": func(t *testing.T) *explanation.Explanation {
		err := failure.Mark(errors.New("the plan \"free\" has no replicas"), failure.WithClass(failure.ClassTerminal), failure.WithReason("PlanTooSmall"),
			failure.WithRemedy("choose the plan \"team\", or set .spec.replicas to 1"))
		s := newScene(t, fails("CreateDatabase", err))
		s.create()
		s.settle()
		return s.explain()
	},
	"foreign-finalizer": func(t *testing.T) *explanation.Explanation {
		s := newScene(t, cleans("CreateDatabase", ctrlkit.NoRequeue))
		s.create(func(db *Database) { db.Finalizers = []string{"backup.io/snapshot"} })
		s.settle()
		time.Sleep(time.Hour)
		s.delete()
		s.settle()
		time.Sleep(25 * time.Minute)
		return s.explain()
	},
	"own-cleanup-waits": func(t *testing.T) *explanation.Explanation {
		s := newScene(t, readPassword{optional: true}, cleans("CreateDatabase", func() (ctrl.Result, error) {
			return ctrlkit.PollFor("2 connections of database db to be closed", 30*time.Second)
		}))
		s.create()
		s.settle()
		time.Sleep(time.Hour)
		s.delete()
		for range 5 {
			s.reconcile()
			time.Sleep(30 * time.Second)
		}
		return s.explain()
	},
	"paused": func(t *testing.T) *explanation.Explanation {
		s := newScene(t, readPassword{})
		s.create()
		s.settle()
		time.Sleep(3 * time.Minute)
		s.update(func(db *Database) { db.Annotations = map[string]string{step.PauseAnnotation: "true"} })
		s.settle()
		time.Sleep(48 * time.Hour)
		return s.explain()
	},
	"hot-loop": func(t *testing.T) *explanation.Explanation {
		s := newScene(t, writes("WriteSettings"))
		s.create()
		settings := settingsOf(s.get())
		if err := s.client.Create(s.ctx(), settings, client.FieldOwner("helm")); err != nil {
			t.Fatal(err)
		}
		for range 6 {
			s.reconcile()
			undo := client.RawPatch(mergePatch, []byte(`{"data":{"size":"small"}}`))
			if err := s.client.Patch(s.ctx(), settings, undo, client.FieldOwner("helm")); err != nil {
				t.Fatal(err)
			}
			s.engine.EventFilter().Update(event.UpdateEvent{ObjectOld: settings, ObjectNew: settings})
			time.Sleep(900 * time.Millisecond)
		}
		return s.explain()
	},
	"workflow": func(t *testing.T) *explanation.Explanation {
		build := func(*request) ctrlkit.Action {
			return ctrlkit.Graph(func(g *ctrlkit.GraphBuilder) {
				network := g.Add(action("CreateNetwork", nil))
				volume := g.Add(action("CreateVolume", errors.New("creating volume db-0: the quota of 10 volumes is used up")), network)
				g.Add(action("StartServer", nil), network, volume)
			})
		}
		s := newScene(t, step.Workflow("Run", build), done("Publish"))
		s.create()
		s.reconcile()
		time.Sleep(10 * time.Second)
		s.reconcile()
		time.Sleep(time.Second)
		return s.explain()
	},
	"group": func(t *testing.T) *explanation.Explanation {
		s := newScene(t, step.Group("Access", readPassword{}, done("CreateUsers")), done("Publish"))
		s.create()
		s.settle()
		time.Sleep(time.Minute)
		return s.explain()
	},
	"exit": func(t *testing.T) *explanation.Explanation {
		s := newScene(t, checkSpec{}, done("CreateDatabase"))
		s.create()
		s.settle()
		time.Sleep(time.Minute)
		return s.explain()
	},
	"requeue": func(t *testing.T) *explanation.Explanation {
		again := func() (ctrl.Result, error) { return ctrlkit.RequeueAfter(time.Minute) }
		s := newScene(t, returns("Migrate", again), done("Publish"))
		s.create()
		s.settle()
		time.Sleep(10 * time.Second)
		return s.explain()
	},
	"ready": func(t *testing.T) *explanation.Explanation {
		s := newScene(t, readPassword{optional: true}, step.When("has replicas", func(r *request) bool { return r.Object.Spec["replicas"] != "" }, done("Replicate")),
			returns("CreateDatabase", func() (ctrl.Result, error) { return ctrlkit.ContinueAndRequeueAfter(time.Hour) }))
		s.create()
		s.settle()
		time.Sleep(20 * time.Minute)
		return s.explain()
	},
	"changed-since": func(t *testing.T) *explanation.Explanation {
		s := newScene(t, done("CreateDatabase"))
		s.create()
		s.settle()
		time.Sleep(time.Minute)
		s.update(func(db *Database) { db.Generation, db.Spec = 2, map[string]string{"size": "large"} })
		return s.explain()
	},
	"finalizer-refused": func(t *testing.T) *explanation.Explanation {
		s := newScene(t, cleans("CreateDatabase", ctrlkit.NoRequeue))
		s.create()
		s.refuse = errFinalizer
		s.settle()
		return s.explain()
	},
	"no-report": func(t *testing.T) *explanation.Explanation {
		s := newScene(t, readPassword{})
		s.create()
		s.settle()
		time.Sleep(time.Hour)
		return withoutReport(s.explain())
	},
	"no-report-deleted": func(t *testing.T) *explanation.Explanation {
		s := newScene(t, cleans("CreateDatabase", func() (ctrl.Result, error) { return ctrlkit.WaitFor("database db to be gone") }))
		s.create()
		s.settle()
		s.delete()
		s.settle()
		time.Sleep(time.Hour)
		return withoutReport(s.explain())
	},
	"after-restart": func(t *testing.T) *explanation.Explanation {
		s := newScene(t, readPassword{})
		s.create()
		s.settle()
		time.Sleep(50 * time.Hour)
		s.start()
		s.settle()
		time.Sleep(5 * time.Minute)
		return s.explain()
	},
	"running": func(t *testing.T) *explanation.Explanation {
		slow := func() (ctrl.Result, error) {
			<-time.After(time.Minute)
			return ctrlkit.NoRequeue()
		}
		s := newScene(t, done("ReadPassword"), returns("Migrate", slow), done("Publish"))
		s.create()
		ended := make(chan struct{})
		go func() {
			s.settle()
			time.Sleep(time.Hour)
			s.update(func(db *Database) { db.Generation = 2 })
			s.reconcile()
			close(ended)
		}()
		time.Sleep(time.Hour + 2*time.Minute + 20*time.Second)
		x := s.explain()
		<-ended
		return x
	},
	"gone": func(t *testing.T) *explanation.Explanation {
		s := newScene(t, readPassword{optional: true}, cleans("CreateDatabase", ctrlkit.NoRequeue))
		s.create()
		s.settle()
		time.Sleep(time.Hour)
		s.delete()
		s.settle()
		time.Sleep(3 * time.Minute)
		return s.explain()
	},
}

// A golden text is read by a person: it says what state the object is in, why, and what to do.
func TestGolden(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(scenes)) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := scenes[name](t)
				golden(t, filepath.Join("testdata", name+".txt"), textOf(t, x))
				if got, want := x.Ready(), name == "ready" || name == "hot-loop"; got != want {
					t.Errorf("Ready() = %v", got)
				}
				roundTrip(t, x)
			})
		})
	}
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	want, err := os.ReadFile(file)
	if err == nil && string(want) == got {
		return
	}
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Errorf("%s differs: %v\n%s", file, err, cmp.Diff(string(want), got))
}

func textOf(t *testing.T, x *explanation.Explanation) string {
	t.Helper()
	var text strings.Builder
	if err := x.Write(&text); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// roundTrip checks that JSON keeps everything that the text is made of.
func roundTrip(t *testing.T, x *explanation.Explanation) {
	t.Helper()
	data, err := json.Marshal(x)
	if err != nil {
		t.Fatal(err)
	}
	var back explanation.Explanation
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(textOf(t, x), textOf(t, &back)); diff != "" {
		t.Errorf("after JSON and back:\n%s", diff)
	}
	again, err := json.Marshal(&back)
	if err != nil || string(again) != string(data) {
		t.Errorf("JSON of what was read from JSON: %v\n%s", err, cmp.Diff(string(data), string(again)))
	}
}

func withoutReport(x *explanation.Explanation) *explanation.Explanation {
	x.Report, x.NoReport = nil, "the operator was not asked"
	return x
}

var (
	errForbidden = forbidden("create", schema.GroupResource{Resource: "services"})
	errFinalizer = forbidden("patch", group.WithResource("databases").GroupResource())
)

// forbidden is the answer of the API server to an operator that lacks a permission.
func forbidden(verb string, resource schema.GroupResource) error {
	return apierrors.NewForbidden(resource, "db", fmt.Errorf("User %q cannot %s resource %q in API group %q in the namespace %q",
		"system:serviceaccount:shop-system:operator", verb, resource.Resource, resource.Group, "shop"))
}

// returns is a step with an outcome.
func returns(name string, outcome func() (ctrl.Result, error)) step.Step[*Database] {
	return step.Func(name, func(context.Context, *request) (ctrl.Result, error) { return outcome() })
}

func done(name string) step.Step[*Database] { return returns(name, ctrlkit.NoRequeue) }

func fails(name string, err error) step.Step[*Database] {
	return returns(name, func() (ctrl.Result, error) { return ctrlkit.RequeueIfError(err) })
}

func action(name string, err error) ctrlkit.Action {
	return ctrlkit.NewAction(name, func(context.Context) (ctrl.Result, error) { return ctrlkit.RequeueIfError(err) })
}

// writes is a step that keeps a ConfigMap.
func writes(name string) step.Step[*Database] {
	return step.Func(name, func(ctx context.Context, req *request) (ctrl.Result, error) {
		settings := settingsOf(req.Object)
		if err := req.Client.Get(ctx, client.ObjectKeyFromObject(settings), settings); err != nil {
			return ctrl.Result{}, err
		}
		want := client.RawPatch(mergePatch, []byte(`{"data":{"size":"large"}}`))
		return ctrlkit.RequeueIfError(req.Client.Patch(ctx, settings, want))
	})
}

func settingsOf(db *Database) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: "db-settings", Namespace: "shop", OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(db, group.WithKind("Database"))},
	}}
}

// cleaner is a step that has something to clean up.
type cleaner struct {
	step.Step[*Database]
	cleanup func() (ctrl.Result, error)
}

func cleans(name string, cleanup func() (ctrl.Result, error)) step.Cleaner[*Database] {
	return cleaner{done(name), cleanup}
}

func (c cleaner) Cleanup(context.Context, *request) (ctrl.Result, error) { return c.cleanup() }

// readPassword waits for a Secret, and reports that in a condition.
type readPassword struct{ optional bool }

func (readPassword) Name() string { return "ReadPassword" }

func (readPassword) Conditions() []condition.Declaration {
	return []condition.Declaration{{Type: "PasswordRead"}}
}

func (r readPassword) Do(ctx context.Context, req *request) (ctrl.Result, error) {
	key := client.ObjectKey{Namespace: req.Object.Namespace, Name: "db-password"}
	err := req.Client.Get(ctx, key, &corev1.Secret{})
	if apierrors.IsNotFound(err) && !r.optional {
		req.Conditions.MarkUnhealthy("PasswordRead", condition.SeverityInfo, "SecretNotFound", fmt.Sprintf("Secret %s does not exist: create it with the key password", key))
		return ctrlkit.WaitFor("Secret " + key.String())
	}
	req.Conditions.MarkHealthy("PasswordRead", "PasswordRead", "")
	return ctrlkit.NoRequeue()
}

// checkSpec finds a mistake that only a person can correct, and ends the reconcile.
type checkSpec struct{}

func (checkSpec) Name() string { return "CheckSpec" }

func (checkSpec) Conditions() []condition.Declaration {
	return []condition.Declaration{{Type: "SpecValid"}}
}

func (checkSpec) Do(_ context.Context, req *request) (ctrl.Result, error) {
	req.Conditions.MarkUnhealthy("SpecValid", condition.SeverityError, "UnknownSize", "spec.size is \"\": set it to \"small\" or \"large\"")
	return ctrlkit.Exit()
}

const mergePatch = types.MergePatchType
