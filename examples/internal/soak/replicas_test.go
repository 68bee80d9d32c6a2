// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

// A plan has each action as often as is asked for, and follows from the seed.
func TestPlanOfActions(t *testing.T) {
	var c counts
	must(t, c.Set("stop=3,freeze=1"))
	names := func(seed uint64) (all []string) {
		for _, a := range c.plan(newRandom(seed, "test")) {
			all = append(all, a.name)
		}
		return all
	}
	if diff := cmp.Diff(names(7), names(7)); diff != "" {
		t.Errorf("two plans of one seed differ:\n%s", diff)
	}
	if got := slices.Sorted(slices.Values(names(1))); !slices.Equal(got, []string{"freeze", "stop", "stop", "stop"}) || c.String() != "stop=3,end=0,kill=0,freeze=1" {
		t.Errorf("actions %q of %s", got, c.String())
	}
	for _, wrong := range []string{"pause=1", "stop", "stop=-1", "stop=x", ""} {
		if err := c.Set(wrong); err == nil {
			t.Errorf("%q is accepted", wrong)
		}
	}
}

// The writes of a process are found by its name, from a time on, whatever was answered.
func TestWritesSince(t *testing.T) {
	line := func(agent string, second string) string {
		return `{"verb":"patch","userAgent":"` + agent + `/v0 (linux)","requestURI":"/x","requestReceivedTimestamp":"2026-01-01T00:00:` + second + `.500000Z","responseStatus":{"code":409}}` + "\n"
	}
	log := line("replica-a-1", "01") + line("replica-a-1", "03") + line("replica-b-1", "04") + line("replica-a-10", "05") + line("kubectl", "06") + `{"verb":`
	all, err := readWrites(strings.NewReader(log))
	must(t, err)
	from := time.Date(2026, 1, 1, 0, 0, 2, 0, time.UTC)
	if got := writesSince(all, from, func(by string) bool { return by == "replica-a-1" }); len(got) != 1 || got[0].what != "patch /x, answered with 409" {
		t.Errorf("found %+v, want one write", got)
	}
	if got := writesSince(all, from, (&replicas{}).isReplicaBut("replica-a-1")); len(got) != 2 {
		t.Errorf("found %+v, want those of two other replicas", got)
	}
	if _, err := readWrites(strings.NewReader("{\n")); err == nil {
		t.Error("a broken line is no error")
	}
}

// The leader is the process that has written the Lease last, unless it was given back.
func TestWriterOf(t *testing.T) {
	lease := &coordinationv1.Lease{}
	at := func(second int) *metav1.Time { return &metav1.Time{Time: seconds(second)} }
	lease.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "replica-b-1", Time: at(5)}, {Manager: "replica-a-1", Time: at(3)}}
	if got := writerOf(lease); got != "" {
		t.Errorf("a Lease that no one holds is %q's", got)
	}
	lease.Spec.HolderIdentity = new("x")
	if got := writerOf(lease); got != "replica-b-1" {
		t.Errorf("the Lease is %q's", got)
	}
	lease.ManagedFields = nil
	if got := writerOf(lease); got != "" {
		t.Errorf("a Lease that no one has written is %q's", got)
	}
}

// A front passes on what both ends send, and notes which process has called.
func TestFront(t *testing.T) {
	if !seesProcesses {
		return
	}
	system, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer system.Close() //nolint:errcheck // the test has what it wants
	go func() {
		conn, err := system.Accept()
		if err == nil {
			_, _ = io.Copy(conn, conn) // until the client closes it
			_ = conn.Close()
		}
	}()
	f, err := newFront(system.Addr().String(), func(sent []byte) bool { return !bytes.Equal(sent, []byte("bye")) })
	must(t, err)
	defer func() { must(t, f.close()) }()
	f.expect([]*operator{{pid: 1}, {pid: os.Getpid()}})
	began := time.Now()
	client, err := net.Dial("tcp", f.address())
	must(t, err)
	for _, text := range []string{"one", "two", "bye"} {
		_, err := client.Write([]byte(text))
		must(t, err)
		echo := make([]byte, len(text))
		_, err = io.ReadFull(client, echo)
		must(t, err)
		if string(echo) != text {
			t.Errorf("the answer to %q is %q", text, echo)
		}
	}
	must(t, client.Close())
	if n := f.since(os.Getpid(), began); n != 2 || f.all() != 2 || f.unknown() != 0 {
		t.Errorf("%d calls of this process, %d of all, %d of none, want 2, 2 and 0", n, f.all(), f.unknown())
	}
	if n := f.since(os.Getpid(), time.Now()); n != 0 {
		t.Errorf("%d calls from now on", n)
	}
}

// An end that is expected is no violation; one with other last words is.
func TestAllowedEnd(t *testing.T) {
	o := newOperator("sh", nil, newLogScan(io.Discard))
	o.name = "replica-x"
	for _, says := range []string{"leader election lost", "boom"} {
		_, ended, err := o.start([]string{"-c", "echo error: $0 is " + says + " >&2; exit 1"})
		must(t, err)
		o.mayEnd(time.Now().Add(time.Hour), lostLease)
		o.crashed(<-ended)
	}
	if ends := o.ends(); len(ends) != 1 || !strings.Contains(ends[0].evidence, "boom") {
		t.Errorf("ends %v, want the second", ends)
	}
	if o.processName() != "replica-x-2" {
		t.Errorf("the process has the name %s", o.processName())
	}
}

// A leader is stopped until another replica has its Lease, and resumed. It may end then because it
// has lost the Lease.
func TestStop(t *testing.T) {
	rings.Test(t, "takes seconds")
	if !seesProcesses {
		return
	}
	leader, stop := startNamed(t, "replica-a", "sh", "-c", "sleep 3; echo error: "+lostLease+" >&2; exit 1")
	defer stop()
	must(t, leader.awaitAnother(t.Context(), "replica-a-0"))
	successor := &operator{name: "replica-b", starts: 1, pid: 1}
	state := func() string { // T is that of a stopped process
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", leader.process()))
		return string(line)
	}
	user := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
			by := "replica-a-1"
			if strings.Contains(state(), " T ") {
				by = "replica-b-1"
			}
			obj.(*coordinationv1.Lease).Spec.HolderIdentity = new("x")
			obj.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: by, Time: &metav1.Time{Time: time.Now()}}})
			return nil
		},
	})
	r := &replicas{soaking: &soaking{user: user, operators: []*operator{leader, successor}}, random: newRandom(1, "test")}
	must(t, r.stop(t.Context()))
	if len(r.stopped) != 1 || r.stopped[0].process != "replica-a-1" || !r.stopped[0].resume.After(r.stopped[0].at) || len(leader.ends()) > 0 {
		t.Errorf("stopped %+v, ends %v", r.stopped, leader.ends())
	}
	if leader.processName() == "replica-a-1" {
		t.Error("the former leader was not started again")
	}
}
