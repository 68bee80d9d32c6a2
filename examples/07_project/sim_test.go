// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	v1 "github.com/ctrlkit/ctrlkit/examples/07_project/api/v1"
	"github.com/ctrlkit/ctrlkit/examples/07_project/backup"
	"github.com/ctrlkit/ctrlkit/examples/internal/exampletest"
	"github.com/ctrlkit/ctrlkit/sim"
)

// The operator ends in the same state whatever goes wrong.
func TestSurvivesEverything(t *testing.T) {
	t.Run("a Project", func(t *testing.T) {
		w := newWorkload(t)
		w.Script = changeProject
		exampletest.Simulate(t, w)
	})
	t.Run("a deletion", func(t *testing.T) {
		w := newWorkload(t)
		w.Script = func(w *sim.World) {
			project := newProject()
			w.Create(newSetting("quota"), newSetting("labels"), project, newNamespace("shop-dev"))
			w.Settle()
			w.Delete(project)
			w.Settle()
		}
		exampletest.Simulate(t, w,
			sim.WithoutFault(sim.FaultRestartInPast, "a list of the past has a Project that is gone, and its members their roles until the watch reports that"))
	})
	t.Run("a Setting", func(t *testing.T) {
		w := newWorkload(t)
		w.Script = func(w *sim.World) {
			project, setting := newProject(), newSetting("labels")
			project.Spec.Members, project.Spec.Quota = nil, nil
			w.Create(project, newNamespace("shop-dev"))
			w.Settle() // without the labels of the Project
			w.Create(setting)
			w.Settle()
			sim.Update(w, setting, func(s *v1.Setting) { s.Spec.State = v1.SettingDisabled })
			w.Settle()
			sim.Update(w, setting, func(s *v1.Setting) { s.Spec.State = v1.SettingEnabled })
			sim.Update(w, project, func(p *v1.Project) { p.Spec.Labels = nil })
			w.Settle()
		}
		exampletest.Simulate(t, w)
	})
	t.Run("a kind that comes later", func(t *testing.T) {
		w := newWorkload(t)
		w.Script = func(w *sim.World) {
			dev, plan := newNamespace("shop-dev"), newPlan()
			w.Create(dev)
			w.Settle()
			w.Create(readDefinition(t))
			w.Settle()
			w.Create(plan)
			w.Settle()
			sim.Update(w, dev, func(ns *corev1.Namespace) { ns.Labels[v1.ProjectLabel] = "blog" })
			w.Settle()
		}
		exampletest.Simulate(t, w,
			sim.WithoutFault(sim.FaultRecreate, "with its definition a BackupPlan is gone, and its user has to create it again"),
			sim.WithoutFault(sim.FaultDeleteAndCreate, "with its definition a BackupPlan is gone, and its user has to create it again"))
	})
}

// changeProject changes a Project with two Namespaces, of which one leaves it.
func changeProject(w *sim.World) {
	project, dev, prod := newProject(), newNamespace("shop-dev"), newNamespace("shop-prod")
	w.Create(newSetting("quota"), newSetting("labels"))
	w.Create(dev) // its Project does not exist yet
	w.Create(project)
	w.Create(prod)
	w.Settle()
	sim.Update(w, project, func(p *v1.Project) {
		p.Spec.Labels = map[string]string{"stage": "beta"}
		p.Spec.Members[0].Name = "bob"
		p.Spec.Quota[corev1.ResourcePods] = resource.MustParse("20")
	})
	w.Settle()
	sim.Update(w, prod, func(ns *corev1.Namespace) { delete(ns.Labels, v1.ProjectLabel) })
	w.Settle()
}

func newWorkload(t *testing.T) sim.Workload {
	return sim.Workload{
		Scheme: simScheme(t), CRDs: []string{"config/crd/bases"}, RBAC: []string{"config/rbac"}, Normalize: withoutPhase,
		Operator: func(ctx context.Context, p *sim.Process) error {
			mgr, err := project.Manager(p.Config(), p.ManagerOptions())
			if err != nil {
				return err
			}
			return mgr.Start(ctx)
		},
	}
}

// withoutPhase leaves out the status of Namespaces: the controller that would restore it does not
// run.
func withoutPhase(obj *sim.Object) bool {
	if obj.Resource.Resource == "namespaces" {
		unstructured.RemoveNestedField(obj.Content, "status")
	}
	return true
}

func newProject() *v1.Project {
	return &v1.Project{ObjectMeta: metav1.ObjectMeta{Name: "shop"}, Spec: v1.ProjectSpec{
		Labels:  map[string]string{"team": "shop", "stage": "alpha"},
		Members: []v1.Member{{Kind: "User", Name: "alice", Role: "admin"}, {Kind: "Group", Name: "developers", Role: "edit"}},
		Quota:   corev1.ResourceList{corev1.ResourcePods: resource.MustParse("10")},
	}}
}

func newNamespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1.ProjectLabel: "shop"}}}
}

func newSetting(name string) *v1.Setting {
	return &v1.Setting{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1.SettingSpec{State: v1.SettingEnabled}}
}

func newPlan() *unstructured.Unstructured {
	plan := &unstructured.Unstructured{}
	plan.SetGroupVersionKind(backup.PlanKind)
	plan.SetNamespace("shop-dev")
	plan.SetName("nightly")
	return plan
}

// readDefinition returns the definition of BackupPlans.
func readDefinition(t *testing.T) *unstructured.Unstructured {
	text, err := os.ReadFile("config/late/backupplans.yaml")
	exampletest.Must(t, err)
	crd := &unstructured.Unstructured{}
	exampletest.Must(t, yaml.Unmarshal(text, &crd.Object))
	return crd
}

func simScheme(t *testing.T) *runtime.Scheme { return exampletest.NewScheme(t, v1.AddToScheme) }
