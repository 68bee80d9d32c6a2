// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package hotloop

import (
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/policy"
)

// unchanged is an arrangement or an answer that changes nothing.
func unchanged(*cluster) {}

// round is the number of the reconcile, for the actions that depend on it.
var round int

var fights = []struct {
	name    string
	arrange func(c *cluster)
	do      action
	answer  func(c *cluster)
	paths   []string
	text    string
	rounds  int
}{
	{"a field of the object", unchanged,
		func(o *operator) { o.label("tier", "ours") },
		func(c *cluster) { c.label("self", "tier", "theirs") },
		[]string{".metadata.labels.tier"}, ".metadata.labels.tier of Pod default/self is written again and again", 6},
	{"a field that another client removes", unchanged,
		func(o *operator) { o.label("tier", "ours") },
		func(c *cluster) { obj := c.get("self"); obj.Labels = nil; c.must(c.server.Update(c.t.Context(), obj)) },
		[]string{".metadata.labels.tier"}, ".metadata.labels.tier of Pod default/self is written again and again", 6},
	{"a condition, whose time differs", unchanged,
		func(o *operator) {
			o.self.Status.Conditions = []corev1.PodCondition{{
				Type: "Up", Status: "True", LastTransitionTime: metav1.NewTime(time.Now().Add(time.Duration(len(o.self.ResourceVersion)) * time.Hour)),
			}}
			o.must(o.Status().Update(o.t.Context(), o.self))
		},
		func(c *cluster) {
			obj := c.get("self")
			obj.Status.Conditions[0].Status = "False"
			c.must(c.server.Status().Update(c.t.Context(), obj))
		},
		[]string{".status.conditions[Up]"}, ".status.conditions[Up] of Pod default/self is written again and again", 6},
	{"a field of a child that is in the cache", func(c *cluster) { c.create(pod("child")) },
		func(o *operator) { o.read("child"); o.patch("child", "tier", "ours") },
		func(c *cluster) { c.label("child", "tier", "theirs") },
		[]string{".metadata.labels.tier"}, ".metadata.labels.tier of Pod default/child is written again and again", 6},
	{"a field of a child that is not read", func(c *cluster) { c.create(pod("child")) }, // the first write is not comparable
		func(o *operator) { o.patch("child", "tier", "ours") },
		func(c *cluster) { c.label("child", "tier", "theirs") },
		[]string{".metadata.labels.tier"}, ".metadata.labels.tier of Pod default/child is written again and again", 8},
	{"a child that another client deletes", unchanged,
		func(o *operator) { o.must(o.Create(o.t.Context(), pod("child"))) },
		func(c *cluster) { c.delete("child") },
		nil, "Pod default/child is created again and again", 6},
	{"a Job that another client deletes before it can have expired", unchanged,
		func(o *operator) { o.must(o.Create(o.t.Context(), job(10))) },
		func(c *cluster) { c.must(c.server.Delete(c.t.Context(), job(10))) },
		nil, "Job default/child is created again and again", 6},
	{"an annotation that another client removes, which wakes us", unchanged,
		request, serve(""),
		[]string{".metadata.annotations.restart"}, ".metadata.annotations.restart of Pod default/self is written again and again", 6},
	{"a field that another client removes, which wakes us", unchanged,
		func(o *operator) { o.label("command", "run") }, unlabel,
		[]string{".metadata.labels.command"}, ".metadata.labels.command of Pod default/self is written again and again", 6},
	{"an annotation that another client changes, at requested times", func(c *cluster) { c.requested = true },
		func(o *operator) {
			metav1.SetMetaDataAnnotation(&o.self.ObjectMeta, "restart", "now")
			o.must(o.Update(o.t.Context(), o.self))
		}, serve("theirs"),
		[]string{".metadata.annotations.restart"}, ".metadata.annotations.restart of Pod default/self is written again and again", 6},
	{"a child that another client creates", func(c *cluster) { c.create(pod("child")) },
		func(o *operator) { o.must(o.Delete(o.t.Context(), o.read("child"))) },
		func(c *cluster) { c.create(pod("child")) },
		nil, "Pod default/child is deleted again and again", 6},
}

// A fight is found with the write that is the sixth within two minutes.
func TestFights(t *testing.T) {
	for _, test := range fights {
		t.Run(test.name, func(t *testing.T) {
			c := newCluster(t)
			test.arrange(c)
			found, rounds := c.rounds(20, 10*time.Second, test.do, func() { test.answer(c) })
			if found == nil {
				t.Fatal("no hot loop was found")
			}
			if !found.Fight || !found.First || found.Count != sameWrites || rounds != test.rounds {
				t.Errorf("after %d reconciles: %+v", rounds, found)
			}
			equal(t, "paths", test.paths, found.Paths)
			if got := c.detector.Text(); len(got) < len(test.text) || got[:len(test.text)] != test.text {
				t.Errorf("text: got %q, want it to begin with %q", got, test.text)
			}
		})
	}
}

// job is a Job of a fixed name that is removed so many seconds after it has finished.
func job(ttl int32) *batchv1.Job {
	return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "child", UID: uuid.NewUUID()}, Spec: batchv1.JobSpec{TTLSecondsAfterFinished: &ttl}}
}

// request sets an annotation of self, if it is not there.
func request(o *operator) {
	if o.self.Annotations["restart"] == "" {
		metav1.SetMetaDataAnnotation(&o.self.ObjectMeta, "restart", "now")
		o.must(o.Update(o.t.Context(), o.self))
	}
}

// serve changes the annotation, or removes it if the value is empty.
func serve(value string) func(c *cluster) {
	return func(c *cluster) {
		obj := c.get("self")
		if obj.Annotations["restart"] = value; value == "" {
			obj.Annotations = nil
		}
		c.must(c.server.Update(c.t.Context(), obj))
	}
}

// unlabel removes the labels.
func unlabel(c *cluster) {
	obj := c.get("self")
	obj.Labels = nil
	c.must(c.server.Update(c.t.Context(), obj))
}

var noHotLoops = []struct {
	name    string
	every   time.Duration
	arrange func(c *cluster)
	do      action
	answer  func(c *cluster)
	live    int // how often the API server may be asked
}{
	{"a value that returns because we wrote another one", 10 * time.Second, unchanged,
		func(o *operator) { o.label("tier", strconv.Itoa(round%2)) }, unchanged, 0},
	{"a value that another client changes, and that we change, too", 10 * time.Second, unchanged,
		func(o *operator) { o.label("tier", strconv.Itoa(round)) },
		func(c *cluster) { c.label("self", "tier", "theirs") }, 0},
	{"a value that was left undone in between", 5 * time.Second, unchanged,
		func(o *operator) {
			if round%2 == 0 {
				o.label("tier", "ours")
			}
		},
		func(c *cluster) { c.label("self", "tier", "theirs") }, 0},
	{"a fight that is too slow", 40 * time.Second, unchanged,
		func(o *operator) { o.label("tier", "ours") },
		func(c *cluster) { c.label("self", "tier", "theirs") }, 40}, // without field managers, each write may prove one
	{"another field of the object", 10 * time.Second, unchanged,
		func(o *operator) { o.patch("self", "tier", "ours") },
		func(c *cluster) { c.label("self", "other", strconv.Itoa(round)) }, 0},
	{"a write that changes nothing", 10 * time.Second, func(c *cluster) { c.create(pod("child")) },
		func(o *operator) { o.patch("child", "tier", "ours") }, unchanged, 0},
	{"a write that changes nothing, and another client", 10 * time.Second, func(c *cluster) { c.create(pod("child")) },
		func(o *operator) { o.patch("child", "tier", "ours") },
		func(c *cluster) { c.label("child", "other", strconv.Itoa(round)) }, 5}, // each time that shows no fight doubles how many writes the next one takes
	{"a dry run", 10 * time.Second, func(c *cluster) { c.create(pod("child")) },
		func(o *operator) { o.read("child"); o.patch("child", "tier", "ours", client.DryRunAll) }, unchanged, 0},
	{"a deletion that matches nothing", 10 * time.Second, unchanged,
		func(o *operator) { _ = o.Delete(o.t.Context(), pod("child")) }, unchanged, 0},
	{"deletions of all that match", 10 * time.Second, unchanged,
		func(o *operator) { o.must(o.DeleteAllOf(o.t.Context(), pod(""), client.InNamespace("other"))) }, unchanged, 0},
	{"a child that we delete, and create again", 10 * time.Second, unchanged,
		func(o *operator) {
			if child := o.read("child"); child != nil {
				o.must(o.Delete(o.t.Context(), child))
				return
			}
			o.must(o.Create(o.t.Context(), pod("child")))
		}, unchanged, 0},
	{"children that we delete together, and create again", 10 * time.Second, unchanged,
		func(o *operator) {
			if o.read("child") != nil {
				o.must(o.DeleteAllOf(o.t.Context(), pod(""), client.InNamespace("default"), client.MatchingLabels{"role": "child"}))
				return
			}
			child := pod("child")
			child.Labels = map[string]string{"role": "child"}
			o.must(o.Create(o.t.Context(), child))
		}, unchanged, 0},
	{"a Job that expires, and is created again", 20 * time.Second, unchanged,
		func(o *operator) { o.must(o.Create(o.t.Context(), job(10))) },
		func(c *cluster) { c.must(c.server.Delete(c.t.Context(), job(10))) }, 0},
	{"a request that another controller serves, and that is made again in time", 10 * time.Second, func(c *cluster) { c.requested = true },
		request, serve(""), 40},
	{"a command that an agent clears, and that is given again in time", 10 * time.Second, func(c *cluster) { c.requested = true },
		func(o *operator) { o.label("command", "run") }, unlabel, 40},
	{"a terminating child that is polled by deleting it", 10 * time.Second,
		func(c *cluster) {
			child := pod("child")
			child.Finalizers = []string{"example.com/wait"}
			c.create(child)
		},
		func(o *operator) { o.must(o.Delete(o.t.Context(), o.read("child"))) }, unchanged, 0},
}

// What a correct operator does is no hot loop, however often it does it.
func TestNoHotLoops(t *testing.T) {
	for _, test := range noHotLoops {
		t.Run(test.name, func(t *testing.T) {
			c := newCluster(t)
			test.arrange(c)
			round = 0
			found, _ := c.rounds(40, test.every, test.do, func() { test.answer(c); round++ })
			if found != nil {
				t.Errorf("after %d reconciles: %s", round+1, c.detector.Text())
			}
			if c.live > test.live {
				t.Errorf("the API server was asked %d times in %d reconciles", c.live, round)
			}
		})
	}
}

// A failed reconcile that leaves a value undone does not accept that.
func TestAFailureAcceptsNothing(t *testing.T) {
	c := newCluster(t)
	do := func(o *operator) {
		if !c.failed {
			o.label("tier", "ours")
		}
	}
	found, _ := c.rounds(20, 5*time.Second, do, func() {
		c.label("self", "tier", "theirs")
		c.failed = !c.failed
	})
	if found == nil {
		t.Error("no hot loop was found")
	}
}

// fight brings a cluster to its first hot loop. It returns the action that fights, and the answer.
func fight(c *cluster) (do action, answer func()) {
	c.t.Helper()
	do = func(o *operator) { o.label("tier", "ours") }
	answer = func() { c.label("self", "tier", "theirs") }
	if found, _ := c.rounds(sameWrites, time.Second, do, answer); found == nil {
		c.t.Fatal("no hot loop was found")
	}
	return do, answer
}

func TestAHotLoopSlowsDown(t *testing.T) {
	c := newCluster(t)
	do, answer := fight(c)
	want := time.Second
	for range 12 {
		if got := c.detector.Until().Sub(c.now); got != want {
			t.Fatalf("it is slowed by %v, want %v", got, want)
		}
		obj := c.get("self")
		if !c.detector.Slows(obj, c.now) || c.detector.Slows(obj, c.now.Add(want)) {
			t.Fatalf("it is not slowed down for %v", want)
		}
		answer()
		c.now = c.now.Add(want)
		want = min(2*want, 5*time.Minute)
		if found, slow := c.reconcile(do); found == nil || found.First || slow != want {
			t.Fatalf("the next time it is slowed by %v, want %v; it is %+v", slow, want, found)
		}
	}
}

func TestWhatIsNotSlowedDown(t *testing.T) {
	c := newCluster(t)
	fight(c)
	tests := []struct {
		name   string
		change func(obj *corev1.Pod)
		want   bool
	}{
		{"nothing changed", func(*corev1.Pod) {}, true},
		{"the spec was changed", func(obj *corev1.Pod) { obj.Generation++ }, false},
		{"its policy was changed", func(obj *corev1.Pod) { obj.Annotations = map[string]string{policy.ReconcileAnnotation: "skip"} }, false},
		{"an annotation was changed that is no policy", func(obj *corev1.Pod) { obj.Annotations = map[string]string{"reconcile": "skip"} }, true},
		{"the object is being deleted", func(obj *corev1.Pod) { obj.DeletionTimestamp = &metav1.Time{Time: c.now} }, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			obj := c.get("self")
			test.change(obj)
			equal(t, "", test.want, c.detector.Slows(obj, c.now))
		})
	}
}

// An object that was in the hot loop with a policy is not slowed down once the policy is removed.
func TestARemovedPolicyIsNotSlowedDown(t *testing.T) {
	c := newCluster(t)
	obj := c.get("self")
	obj.Annotations = map[string]string{policy.ReclaimAnnotation: "retain"}
	c.must(c.server.Update(t.Context(), obj))
	fight(c)
	obj = c.get("self")
	if !c.detector.Slows(obj, c.now) {
		t.Error("it is not slowed down although nothing has changed")
	}
	obj.Annotations = nil
	if c.detector.Slows(obj, c.now) {
		t.Error("it is slowed down although its policy was removed")
	}
}

func TestAHotLoopIsOver(t *testing.T) {
	c := newCluster(t)
	equal(t, "time until there is no hot loop", 0, c.detector.UntilOver(c.now))
	fight(c)
	over := c.detector.UntilOver(c.now)
	if want := 2*time.Second + loopWindow; over != want {
		t.Fatalf("it is over in %v, want %v", over, want)
	}
	c.detector.Expire(c.now.Add(over - 1))
	if c.detector.Text() == "" {
		t.Error("it is over too early")
	}
	c.now = c.now.Add(over)
	c.detector.Expire(c.now)
	if c.detector.Text() != "" || !c.detector.Until().IsZero() || c.detector.UntilOver(c.now) != 0 {
		t.Errorf("it is not over: %q, until %v", c.detector.Text(), c.detector.Until())
	}
}

// A hot loop that is not found again after a change of the spec is over with it.
func TestAChangeOfTheSpecEndsAHotLoop(t *testing.T) {
	c := newCluster(t)
	fight(c)
	obj := c.get("self")
	obj.Generation++
	c.must(c.server.Update(t.Context(), obj))
	c.reconcile(func(*operator) {})
	c.detector.Expire(c.now)
	equal(t, "", "", c.detector.Text())
}

// A field owner that a step names in a write is one of ours.
func TestOtherFieldOwnersOfOurs(t *testing.T) {
	c := newCluster(t)
	found, _ := c.rounds(20, time.Second, func(o *operator) {
		o.patch("self", "tier", "ours", client.FieldOwner("things-sidecar"))
	}, func() { c.label("self", "tier", "theirs") })
	if diff := cmp.Diff([]string{"things-sidecar"}, c.detector.owners); found == nil || diff != "" {
		t.Errorf("found %+v, with our other owners (-want +got):\n%s", found, diff)
	}
}

// A reconcile in which the API server refused a write does not accept it either.
func TestARefusalAcceptsNothing(t *testing.T) {
	c := newCluster(t)
	round := 0
	found, _ := c.rounds(20, 5*time.Second, func(o *operator) {
		if round++; round%2 == 0 {
			_ = o.Update(o.t.Context(), pod("missing"))
			return
		}
		o.label("tier", "ours")
	}, func() { c.label("self", "tier", "theirs") })
	if found == nil {
		t.Error("no hot loop was found")
	}
}
