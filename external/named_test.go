// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external_test

import (
	"strings"
	"testing"
	"time"

	"github.com/ctrlkit/ctrlkit/external"
	"github.com/ctrlkit/ctrlkit/policy"
)

// An object that names a resource which does not exist gets no other one.
func TestWrongIDIsNotReplaced(t *testing.T) {
	for name, arrange := range map[string]func(d *siloDesk){
		"from the beginning": func(d *siloDesk) { d.annotate(external.IDAnnotation, "silo-78") },
		"after a restart":    func(d *siloDesk) { d.annotate(external.IDAnnotation, "silo-78"); d.fails(); d.restart() },
		"after it was only observed": func(d *siloDesk) {
			d.change(func(obj *Silo) {
				obj.Annotations = map[string]string{external.IDAnnotation: "silo-78", policy.AllowAnnotation: "observe"}
			})
			d.settle()
			d.change(func(obj *Silo) { delete(obj.Annotations, policy.AllowAnnotation) })
		},
		"after another one was claimed": func(d *siloDesk) { d.settle(); d.annotate(external.IDAnnotation, "silo-78") },
		"after a creation that may have happened": func(d *siloDesk) {
			d.annotate(external.IntentAnnotation, "begun 2026-11-22T10:00:00Z by another")
			d.annotate(external.IDAnnotation, "silo-78")
		},
	} {
		t.Run(name, func(t *testing.T) {
			eachIdentity(t, func(t *testing.T, d *siloDesk) {
				d.store.all["silo-77"] = &stored{id: "silo-77", size: "small"}
				arrange(d)
				n := len(d.store.all)
				for range 5 {
					d.fails()
					time.Sleep(time.Hour)
				}
				d.has(n)
				d.expect("Stalled", "True WrongAnnotation: ")
				d.expect("Available", "False Absent")
				if id := external.IDOf(d.get()); id != "silo-78" {
					t.Errorf("the annotation is %q now", id)
				}
				if len(d.get().Finalizers) > 0 && !strings.HasPrefix(name, "after a") {
					t.Errorf("an object without a resource has the finalizers %q", d.get().Finalizers)
				}
				if name == "after another one was claimed" {
					return // it has its own, to which the annotation is to be set back
				}
				d.annotate(external.IDAnnotation, "silo-77")
				d.settle()
				d.has(n)
				d.expect("Ready", "True")
			}, "name") // there the annotation chooses the name
		})
	}
}

// A resource that was claimed, and that another client has deleted, is created again, also after the
// record of its creation is lost.
func TestClaimedIDIsReplaced(t *testing.T) {
	for name, lose := range map[string]func(d *siloDesk){
		"with its record":    func(*siloDesk) {},
		"after a restart":    func(d *siloDesk) { d.restart() },
		"its record is lost": func(d *siloDesk) { d.change(func(obj *Silo) { delete(obj.Annotations, external.IntentAnnotation) }) },
		"lost, after a restart": func(d *siloDesk) {
			d.change(func(obj *Silo) { delete(obj.Annotations, external.IntentAnnotation) })
			d.restart()
		},
		"named by a person after a crash": func(d *siloDesk) {
			if record := strings.Fields(d.get().Annotations[external.IntentAnnotation]); len(d.store.all) > 0 {
				d.annotate(external.IntentAnnotation, "begun "+record[1]+" by another")
				d.restart()
			}
		},
		"adopted, before it was": func(d *siloDesk) { d.settle() },
	} {
		t.Run(name, func(t *testing.T) {
			eachIdentity(t, func(t *testing.T, d *siloDesk) {
				if strings.HasPrefix(name, "adopted") && !strings.HasSuffix(t.Name(), "/name") {
					d.store.all["silo-77"] = &stored{id: "silo-77", size: "small"}
					d.annotate(external.IDAnnotation, "silo-77")
				}
				d.settle()
				time.Sleep(time.Hour)
				if name == "named by a person after a crash" {
					lose(d)
					d.settle()
				}
				clear(d.store.all)
				lose(d)
				for range 5 {
					_, _ = d.reconcile()
					time.Sleep(time.Minute)
				}
				d.has(1)
				d.expect("Ready", "True")
			})
		})
	}
}
