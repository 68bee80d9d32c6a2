// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package hotloop

import (
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An operator that writes another value each time causes its next reconcile itself.
func TestAnEcho(t *testing.T) {
	c := newCluster(t)
	n := 0
	do := func(o *operator) { n++; o.label("count", strconv.Itoa(n)) }
	found, rounds := c.rounds(100, time.Millisecond, do, func() {})
	// The first one was caused by what came before.
	if found == nil || found.Fight || found.Count != mostEchoes || rounds != mostEchoes+1 {
		t.Fatalf("after %d reconciles: %+v", rounds, found)
	}
	want := "update of Pod default/self is written again and again: a step gives it another value each time"
	equal(t, "text", want, c.detector.Text())

	// While it is in a hot loop, fewer reconciles prove that it has not ended.
	found, rounds = c.rounds(100, time.Millisecond, do, func() {})
	if want := echoesUnwatched + sameWrites; found == nil || found.First || rounds != want {
		t.Errorf("after %d reconciles, want %d: %+v", rounds, want, found)
	}
}

// The text of a patch names the fields that are written.
func TestAnEchoNamesItsFields(t *testing.T) {
	c := newCluster(t)
	n := 0
	found, _ := c.rounds(100, time.Millisecond, func(o *operator) {
		n++
		o.patch("self", "count", strconv.Itoa(n))
		o.self.ResourceVersion = c.get("self").ResourceVersion
	}, func() {})
	if found == nil || !strings.HasPrefix(c.detector.Text(), ".metadata.labels.count of Pod default/self") {
		t.Errorf("found %+v: %q", found, c.detector.Text())
	}
}

// What has another reason to write than its own last write is no echo.
func TestNoEchoes(t *testing.T) {
	n := 0
	count := func(o *operator) { o.label("count", strconv.Itoa(n)) }
	tests := []struct {
		name    string
		every   time.Duration
		arrange func(c *cluster)
		do      action
		answer  func(c *cluster)
	}{
		{"a requested time", time.Millisecond, func(c *cluster) { c.requested = true }, count, func(*cluster) {}},
		{"too slow", echoWithin, func(*cluster) {}, count, func(*cluster) {}},
		{"the object was changed", time.Millisecond, func(*cluster) {}, count,
			func(c *cluster) { c.label("self", "other", strconv.Itoa(n)) }},
		{"another object was changed", time.Millisecond, func(c *cluster) { c.create(pod("other")) },
			func(o *operator) { o.read("other"); count(o) },
			func(c *cluster) { c.label("other", "x", strconv.Itoa(n)) }},
		{"another object is written for the first time", time.Millisecond, func(*cluster) {},
			func(o *operator) { o.must(o.Create(o.t.Context(), pod("child-"+strconv.Itoa(n)))); count(o) }, func(*cluster) {}},
		{"now and then nothing is written", time.Millisecond, func(*cluster) {},
			func(o *operator) {
				if n%50 != 0 {
					count(o)
				}
			}, func(*cluster) {}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := newCluster(t)
			n = 0
			test.arrange(c)
			if found, _ := c.rounds(3*mostEchoes, test.every, test.do, func() { n++; test.answer(c) }); found != nil {
				t.Errorf("after %d reconciles: %s", n+1, c.detector.Text())
			}
		})
	}
}

// An operator that reads and writes other objects is an echo as well, if nothing else changes them.
func TestAnEchoOfAChild(t *testing.T) {
	c := newCluster(t)
	c.create(pod("child"))
	n := 0
	found, _ := c.rounds(100, time.Millisecond, func(o *operator) {
		n++
		child := o.read("child")
		metav1.SetMetaDataLabel(&child.ObjectMeta, "count", strconv.Itoa(n))
		o.must(o.Update(o.t.Context(), child))
		o.label("count", strconv.Itoa(n))
	}, func() {})
	if found == nil || found.Fight || found.Write.Object != self {
		t.Errorf("found %+v", found)
	}
}

// What is read is noted only when echoes are suspected.
func TestReadsAreNotedUnderSuspicion(t *testing.T) {
	c := newCluster(t)
	n := 0
	for c.detector.echoes.count < echoesUnwatched {
		if c.detector.Reads() != nil {
			t.Fatalf("they are noted after %d reconciles", n)
		}
		n++
		c.reconcile(func(o *operator) { o.label("count", strconv.Itoa(n)) })
		c.now = c.now.Add(time.Millisecond)
	}
	if c.detector.Reads() == nil {
		t.Errorf("they are not noted after %d reconciles", n)
	}
}
