// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
)

// idleOperator does nothing until its context is done.
func idleOperator(ctx context.Context, _ *Process) error {
	<-ctx.Done()
	return nil
}

func configMap(name string, labels ...string) *corev1.ConfigMap {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}, Data: map[string]string{"a": "1"}}
	for _, label := range labels {
		cm.Labels = map[string]string{label: "yes"}
	}
	return cm
}

// play runs a workload once with a plan, and returns what it shows. Without an operator it has one
// that does nothing.
func play(t *testing.T, w Workload, text string) *result {
	t.Helper()
	if w.Operator == nil {
		w.Operator = idleOperator
	}
	result, err := runPlan(t, &w, nil, mustParse(t, text)[0], nil, oracleSet{})
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// script runs a script, which must not violate anything.
func script(t *testing.T, w Workload, script func(*World)) *result {
	t.Helper()
	w.Script = script
	result := play(t, w, "")
	for _, v := range result.violations {
		t.Errorf("%s\n%s", v, result.trace)
	}
	return result
}

func TestCreateGetListUpdateDelete(t *testing.T) {
	script(t, Workload{Objects: []client.Object{configMap("there-before")}}, func(w *World) {
		if _, ok := Get(w, configMap("x")); ok {
			t.Error("x is there before it was created")
		}
		x := configMap("x")
		w.Create(x, configMap("y"))
		if x.UID != "" {
			t.Error("Create has changed the object of the script, which the next run uses too")
		}
		current, ok := Get(w, x)
		if !ok || current.UID == "" || current.Data["a"] != "1" {
			t.Errorf("got %v, %t", current, ok)
		}
		Update(w, x, func(x *corev1.ConfigMap) { x.Data = map[string]string{"b": "2"} })
		if current, _ = Get(w, x); !cmp.Equal(current.Data, map[string]string{"b": "2"}) {
			t.Errorf("the update has made %v", current.Data)
		}
		w.Delete(x, configMap("never-created")) // what is gone already is no mistake
		var names []string
		for _, cm := range List(w, &corev1.ConfigMapList{}, "default").Items {
			if !strings.HasPrefix(cm.Name, "kube-") {
				names = append(names, cm.Name)
			}
		}
		if diff := cmp.Diff([]string{"there-before", "y"}, names); diff != "" {
			t.Error(diff)
		}
		if n := len(List(w, &corev1.ConfigMapList{}, "elsewhere").Items); n != 0 {
			t.Errorf("%d ConfigMaps in another namespace", n)
		}
		if n := len(List(w, &corev1.NamespaceList{}, "").Items); n == 0 {
			t.Error("there are no namespaces")
		}
	})
}

// The status is the controllers' part, the rest the users': neither update changes the other part.
func TestUpdateStatus(t *testing.T) {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: "default"}, Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{
		Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "busybox"}}},
	}}}
	script(t, Workload{}, func(w *World) {
		w.Create(job)
		UpdateStatus(w, job, func(j *batchv1.Job) { j.Status.Succeeded, j.Labels = 1, map[string]string{"not": "here"} })
		Update(w, job, func(j *batchv1.Job) { j.Status.Succeeded, j.Labels = 7, map[string]string{"but": "here"} })
		got, _ := Get(w, job)
		if got.Status.Succeeded != 1 || !cmp.Equal(got.Labels, map[string]string{"but": "here"}) {
			t.Errorf("got the status %d and the labels %v", got.Status.Succeeded, got.Labels)
		}
	})
}

// Update waits for an object that a fault has taken away, and reads it anew each time.
func TestUpdateWaits(t *testing.T) {
	w := Workload{Operator: func(ctx context.Context, p *Process) error {
		c, err := client.New(p.Config(), client.Options{})
		if err != nil {
			return err
		}
		time.Sleep(time.Minute)
		if c.Get(ctx, client.ObjectKeyFromObject(configMap("x")), &corev1.ConfigMap{}) == nil {
			return idleOperator(ctx, p)
		}
		if err := c.Create(ctx, configMap("x")); err != nil {
			return err
		}
		return idleOperator(ctx, p)
	}}
	script(t, w, func(w *World) {
		calls := 0
		Update(w, configMap("x"), func(x *corev1.ConfigMap) {
			calls++
			x.Data["a"] = "2"
		})
		x, _ := Get(w, configMap("x"))
		if since := time.Since(w.run.trace.Start); x.Data["a"] != "2" || calls != 1 || since < time.Minute {
			t.Errorf("after %s and %d calls, x has %v", since, calls, x.Data)
		}
	})
}

// In the run without faults a detour is none. With the fault, the object comes back as it was.
func TestDetour(t *testing.T) {
	w := Workload{Script: func(w *World) {
		x := configMap("x")
		w.Create(x)
		Detour(w, configMap("not-there"), func(*corev1.ConfigMap) { t.Error("a detour of what is not there") })
		Detour(w, x, func(x *corev1.ConfigMap) {
			x.Data, x.Labels = map[string]string{"b": "2"}, map[string]string{"detour": "yes"}
		})
		if got, _ := Get(w, x); !cmp.Equal(got.Data, x.Data) || len(got.Labels) > 0 {
			t.Errorf("after the detour: %v %v", got.Data, got.Labels)
		}
	}}
	writes := func(r *result) int { return strings.Count(r.trace.String(), "update configmaps default/x -> 200") }
	for plan, want := range map[string]int{"": 0, "detour 1": 0, "detour 2": 2} {
		if r := play(t, w, plan); writes(r) != want || len(r.violations) > 0 {
			t.Errorf("%q: %d updates, want %d; %v\n%s", plan, writes(r), want, r.violations, r.trace)
		}
	}
}

func TestSleep(t *testing.T) {
	script(t, Workload{}, func(w *World) {
		begin := time.Now()
		if want := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC); !begin.Truncate(time.Second).Equal(want) {
			t.Errorf("the run begins at %s, want %s", begin, want)
		}
		w.Sleep(time.Hour)
		if d := time.Since(begin); d != time.Hour {
			t.Errorf("it was %s", d)
		}
		w.SleepUntil(9 * time.Hour)
		if d := time.Since(w.run.trace.Start); d != 9*time.Hour {
			t.Errorf("it is %s", d)
		}
		w.Log("good morning")
		if !strings.Contains(w.run.trace.String(), "9h0m0s  user               script     good morning") {
			t.Errorf("the line is not in the trace:\n%s", w.run.trace)
		}
	})
}

// A mistake of the script ends the run there, and says which one it is.
func TestMistakesOfScripts(t *testing.T) {
	for name, test := range map[string]struct {
		script func(*World)
		want   string
	}{
		"a past to wait for":    {func(w *World) { w.Sleep(time.Hour); w.SleepUntil(time.Minute) }, "sleeping until 1m0s: that was 59m0s ago, leave more time"},
		"an unknown system":     {func(w *World) { w.Resources("buckets") }, `look into buckets: the workload has no external system "buckets"`},
		"an object twice":       {func(w *World) { w.Create(configMap("x"), configMap("x")) }, `create ConfigMap default/x: configmaps "x" already exists`},
		"an object without":     {func(w *World) { Update(w, configMap("x"), func(*corev1.ConfigMap) {}) }, "update ConfigMap default/x: "},
		"a type without scheme": {func(w *World) { Get(w, &unknown{}) }, "get *sim.unknown /: *sim.unknown is not in Workload.Scheme: "},
		"a panic":               {func(*World) { panic("oh") }, "panic: oh\n"},
	} {
		t.Run(name, func(t *testing.T) {
			ended := true
			w := Workload{Patience: 10 * time.Minute, Script: func(w *World) {
				test.script(w)
				ended = false
			}}
			r := play(t, w, "")
			if len(r.violations) != 1 || r.violations[0].Oracle != oracle.ScriptRuns || !strings.HasPrefix(r.violations[0].Text, test.want) {
				t.Errorf("got %v, want %s: %s", r.violations, oracle.ScriptRuns, test.want)
			}
			if !ended {
				t.Error("the script continued")
			}
		})
	}
}

// unknown is an object of which no scheme knows.
type unknown struct{ corev1.ConfigMap }

func (u *unknown) DeepCopyObject() runtime.Object { return &unknown{*u.DeepCopy()} }

// Settle waits for the quiet time after the last write, and makes a checkpoint.
func TestSettle(t *testing.T) {
	w := Workload{Quiet: 5 * time.Minute}
	r := script(t, w, func(w *World) {
		begin := time.Now()
		w.Create(configMap("x"))
		w.Settle()
		if d := time.Since(begin); d < 5*time.Minute || d > 6*time.Minute {
			t.Errorf("idle after %s, want five minutes and a little", d)
		}
		w.Delete(configMap("x"))
	})
	// One is the script's, one is made at its end.
	var has []bool
	for _, checkpoint := range r.checkpoints {
		_, ok := checkpoint["configmaps default/x"]
		has = append(has, ok)
	}
	if diff := cmp.Diff([]bool{true, false}, has); diff != "" {
		t.Errorf("whether x is in the checkpoints: %s", diff)
	}
}

// What the workload says is left out of the comparison is left out.
func TestNormalizeOfAWorkload(t *testing.T) {
	w := Workload{Normalize: func(obj *Object) bool {
		if obj.Name == "x" {
			obj.Content["data"] = "normalized in " + obj.Namespace
		}
		return obj.Name != "y" && obj.Resource.Resource == "configmaps"
	}}
	r := script(t, w, func(w *World) { w.Create(configMap("x"), configMap("y")) })
	world := r.checkpoints[0]
	if _, ok := world["configmaps default/y"]; ok || world["configmaps default/x"][".data"] != "normalized in default" {
		t.Errorf("got %v", world)
	}
}

// A client of the script acts as a user, not as the operator, and faults do not strike at it.
func TestConfigOfTheScript(t *testing.T) {
	clients := func(w *World) {
		for _, name := range []string{"x", "y"} {
			c, err := client.New(w.Config(), client.Options{})
			if err != nil {
				t.Error(err)
				return
			}
			if err := c.Create(context.Background(), configMap(name)); err != nil {
				t.Error(err)
			}
		}
	}
	for _, plan := range []string{"", "crash after write 1", "restart 1 events in the past of configmaps after write 1", "refuse read 1: 500"} {
		text := play(t, Workload{Script: clients}, plan).trace.String()
		for _, want := range []string{"user-1 ", "user-2 ", "create configmaps default/y -> 201"} {
			if !strings.Contains(text, want) {
				t.Errorf("%q: %q is not in the trace:\n%s", plan, want, text)
			}
		}
	}
}
