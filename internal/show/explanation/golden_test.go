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
	"github.com/ctrlkit/ctrlkit/internal/show/explanation"
	"github.com/ctrlkit/ctrlkit/step"
)

var update = flag.Bool("update", false, "rewrite the golden files, and fail")

// scenes are what happened to the Database shop/db, each named like its golden file: in order, the
// methods of a scene, and the time that passes.
var scenes = map[string]struct {
	steps []step.Step[*Database]
	story string
	// more are words of the story that this scene has alone.
	more map[string]func(*scene)
}{
	"missing-secret":   {steps: steps(readPassword(false), done("CreateDatabase")), story: "create settle 12m"},
	"unwatched-secret": {steps: steps(readPassword(false), done("CreateDatabase")), story: "wire create settle 12m"},
	"poll": {
		steps: steps(returns("CreateDatabase", func() error { return ctrlkit.Poll("database db to be available", 10*time.Second) })),
		story: "create" + strings.Repeat(" reconcile 10s", 20) + " reconcile 3s",
	},
	"failing-step": {
		steps: steps(done("ReadPassword"), fails("CreateDatabase", errForbidden), done("Publish")),
		story: "create reconcile 30s reconcile 60s reconcile 2s",
	},
	// The second process writes nothing: the objects are as they were applied, in no particular order.
	"set":         {steps: steps(parts(), done("Publish")), story: "create settle 1m start settle 12s"},
	"set-refused": {steps: steps(parts(), done("Publish")), story: "foreign create settle 1m start settle 2s"},
	"own-remedy": {
		steps: steps(fails("CreateDatabase", failure.Mark(errors.New("the plan \"free\" has no replicas"), failure.WithClass(failure.ClassTerminal),
			failure.WithReason("PlanTooSmall"), failure.WithRemedy("choose the plan \"team\", or set .spec.replicas to 1")))),
		story: "create settle",
	},
	"foreign-finalizer": {
		steps: steps(cleans("CreateDatabase", func() error { return nil })), story: "backedup settle 1h delete settle 25m",
		more: map[string]func(*scene){"backedup": func(s *scene) { s.create(func(db *Database) { db.Finalizers = []string{"backup.io/snapshot"} }) }},
	},
	"own-cleanup-waits": {
		steps: steps(readPassword(true), cleans("CreateDatabase", func() error {
			return ctrlkit.Poll("2 connections of database db to be closed", 30*time.Second)
		})),
		story: "create settle 1h delete" + strings.Repeat(" reconcile 30s", 5),
	},
	"paused": {
		steps: steps(readPassword(false)), story: "create settle 3m pause settle 48h",
		more: map[string]func(*scene){"pause": func(s *scene) {
			s.update(func(db *Database) { db.Annotations = map[string]string{step.PauseAnnotation: "true"} })
		}},
	},
	"hot-loop": {
		steps: steps(writes("WriteSettings")), story: "create owned" + strings.Repeat(" reconcile undo 900ms", 6),
		more: map[string]func(*scene){"owned": func(s *scene) { s.helm(settingsOf(s.get())) }, "undo": func(s *scene) {
			settings, undo := settingsOf(s.get()), client.RawPatch(mergePatch, []byte(`{"data":{"size":"small"}}`))
			must(s.t, s.client.Patch(s.ctx(), settings, undo, client.FieldOwner("helm")))
			s.engine.EventFilter().Update(event.UpdateEvent{ObjectOld: settings, ObjectNew: settings})
		}},
	},
	"workflow": {
		steps: steps(step.Step[*Database]{Name: "Run", Do: step.Workflow(func(*request) ctrlkit.Action {
			return ctrlkit.Graph(func(g *ctrlkit.GraphBuilder) {
				network := g.Add(action("CreateNetwork", nil))
				volume := g.Add(action("CreateVolume", errors.New("creating volume db-0: the quota of 10 volumes is used up")), network)
				g.Add(action("StartServer", nil), network, volume)
			})
		})}, done("Publish")),
		story: "create reconcile 10s reconcile 1s",
	},
	"group":   {steps: steps(step.Group("Access", readPassword(false), done("CreateUsers")), done("Publish")), story: "create settle 1m"},
	"exit":    {steps: steps(checkSpec, done("CreateDatabase")), story: "create settle 1m"},
	"requeue": {steps: steps(returns("Migrate", func() error { return ctrlkit.AsError(ctrlkit.RequeueAfter(time.Minute)) }), done("Publish")), story: "create settle 10s"},
	"ready": {
		steps: steps(readPassword(true), step.When("has replicas", func(r *request) bool { return r.Object.Spec["replicas"] != "" }, done("Replicate")),
			returns("CreateDatabase", func() error { return ctrlkit.RequeueWithin(time.Hour) })),
		story: "create settle 20m",
	},
	"changed-since": {
		steps: steps(done("CreateDatabase")), story: "create settle 1m enlarge",
		more: map[string]func(*scene){"enlarge": func(s *scene) {
			s.update(func(db *Database) { db.Generation, db.Spec = 2, map[string]string{"size": "large"} })
		}},
	},
	"finalizer-refused": {
		steps: steps(cleans("CreateDatabase", func() error { return nil })), story: "create refuse settle",
		more: map[string]func(*scene){"refuse": func(s *scene) { s.refuse = errFinalizer }},
	},
	"no-report": {steps: steps(readPassword(false)), story: "create settle 1h"},
	"no-report-deleted": {
		steps: steps(cleans("CreateDatabase", func() error { return ctrlkit.Wait("database db to be gone") })),
		story: "create settle delete settle 1h",
	},
	"after-restart": {steps: steps(readPassword(false)), story: "create settle 50h start settle 5m"},
	"running": {
		steps: steps(done("ReadPassword"), returns("Migrate", func() error {
			<-time.After(time.Minute)
			return nil
		}), done("Publish")),
		story: "create begin 1h2m20s explain 1h",
		more: map[string]func(*scene){"begin": func(s *scene) {
			go func() {
				s.settle()
				time.Sleep(time.Hour)
				s.update(func(db *Database) { db.Generation = 2 })
				s.reconcile()
			}()
		}},
	},
	"panic": {steps: steps(returns("Migrate", func() error { panic("no such table") }), done("Publish")), story: "create settle"},
	"hanging": {
		steps: steps(returns("Migrate", func() error {
			<-time.After(time.Hour)
			return nil
		}), done("Publish")),
		story: "create begin 2m explain 1h", more: map[string]func(*scene){"begin": func(s *scene) { go s.reconcile() }},
	},
	"gone": {steps: steps(readPassword(true), cleans("CreateDatabase", func() error { return nil })), story: "create settle 1h delete settle 3m"},
}

func steps(list ...step.Step[*Database]) []step.Step[*Database] { return list }

// happen lets a scene of the table happen, and explains it.
func happen(t *testing.T, name string) *explanation.Explanation {
	row := scenes[name]
	s := newScene(t, row.steps...)
	var x *explanation.Explanation
	words := map[string]func(*scene){
		"create": func(s *scene) { s.create() }, "reconcile": func(s *scene) { s.reconcile() }, "settle": (*scene).settle, "start": (*scene).start,
		"delete": (*scene).delete, "explain": func(s *scene) { x = s.explain() },
		"foreign": func(s *scene) {
			s.helm(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "settings"}})
		},
		"wire": func(s *scene) {
			if _, err := s.engine.Wire(&Database{}); err != nil {
				t.Fatal(err)
			}
		},
	}
	maps.Copy(words, row.more)
	for _, word := range strings.Fields(row.story) {
		if f, ok := words[word]; ok {
			f(s)
			continue
		}
		d, err := time.ParseDuration(word)
		must(t, err)
		time.Sleep(d)
	}
	if x == nil {
		x = s.explain()
	}
	return x
}

// helm creates an object as another field owner.
func (s *scene) helm(obj client.Object) {
	s.t.Helper()
	must(s.t, s.client.Create(s.ctx(), obj, client.FieldOwner("helm")))
}

// A golden text is read by a person: it says what state the object is in, why, and what to do.
func TestGolden(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(scenes)) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := happen(t, name)
				if strings.HasPrefix(name, "no-report") {
					x.Report, x.NoReport = nil, "the operator was not asked"
				}
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
		must(t, os.WriteFile(file, []byte(got), 0o644))
	}
	t.Errorf("%s differs: %v\n%s", file, err, cmp.Diff(string(want), got))
}

func textOf(t *testing.T, x *explanation.Explanation) string {
	t.Helper()
	var text strings.Builder
	must(t, x.Write(&text))
	return text.String()
}

// roundTrip checks that JSON keeps everything that the text is made of.
func roundTrip(t *testing.T, x *explanation.Explanation) {
	t.Helper()
	data, err := json.Marshal(x)
	must(t, err)
	var back explanation.Explanation
	must(t, json.Unmarshal(data, &back))
	if diff := cmp.Diff(textOf(t, x), textOf(t, &back)); diff != "" {
		t.Errorf("after JSON and back:\n%s", diff)
	}
	again, err := json.Marshal(&back)
	if err != nil || string(again) != string(data) {
		t.Errorf("JSON of what was read from JSON: %v\n%s", err, cmp.Diff(string(data), string(again)))
	}
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
func returns(name string, outcome func() error) step.Step[*Database] {
	return step.Step[*Database]{Name: name, Do: func(context.Context, *request) error { return outcome() }}
}

func done(name string) step.Step[*Database] { return returns(name, func() error { return nil }) }

func fails(name string, err error) step.Step[*Database] {
	return returns(name, func() error { return err })
}

func action(name string, err error) ctrlkit.Action {
	return ctrlkit.NewAction(name, func(context.Context) (ctrl.Result, error) { return ctrlkit.RequeueIfError(err) })
}

// writes is a step that keeps a ConfigMap.
func writes(name string) step.Step[*Database] {
	return step.Step[*Database]{Name: name, Do: func(ctx context.Context, req *request) error {
		settings := settingsOf(req.Object)
		if err := req.Client.Get(ctx, client.ObjectKeyFromObject(settings), settings); err != nil {
			return err
		}
		want := client.RawPatch(mergePatch, []byte(`{"data":{"size":"large"}}`))
		return req.Client.Patch(ctx, settings, want)
	}}
}

func settingsOf(db *Database) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: "db-settings", Namespace: "shop", OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(db, group.WithKind("Database"))},
	}}
}

// cleans returns a step that has something to clean up.
func cleans(name string, cleanup func() error) step.Step[*Database] {
	s := done(name)
	s.Cleanup = func(context.Context, *request) error { return cleanup() }
	return s
}

// readPassword waits for a Secret, and reports that in a condition.
func readPassword(optional bool) step.Step[*Database] {
	return step.Step[*Database]{
		Name: "ReadPassword", Conditions: []condition.Declaration{{Type: "PasswordRead"}},
		Do: func(ctx context.Context, req *request) error { return readSecret(ctx, req, optional) },
	}
}

func readSecret(ctx context.Context, req *request, optional bool) error {
	key := client.ObjectKey{Namespace: req.Object.Namespace, Name: "db-password"}
	err := req.Client.Get(ctx, key, &corev1.Secret{})
	if apierrors.IsNotFound(err) && !optional {
		req.Conditions.MarkUnhealthy("PasswordRead", condition.SeverityInfo, "SecretNotFound", fmt.Sprintf("Secret %s does not exist: create it with the key password", key))
		return ctrlkit.Wait("Secret " + key.String())
	}
	req.Conditions.MarkHealthy("PasswordRead", "PasswordRead", "")
	return nil
}

// checkSpec finds a mistake that only a person can correct, and ends the reconcile.
var checkSpec = step.Step[*Database]{Name: "CheckSpec", Do: findMistake, Conditions: []condition.Declaration{{Type: "SpecValid"}}}

func findMistake(_ context.Context, req *request) error {
	req.Conditions.MarkUnhealthy("SpecValid", condition.SeverityError, "UnknownSize", "spec.size is \"\": set it to \"small\" or \"large\"")
	return ctrlkit.ErrExit
}

const mergePatch = types.MergePatchType
