// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// policy has the API server write down each write of an object of the ring, with what it answered.
const policy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: RequestResponse
    verbs: [create, update, patch, delete]
    resources:
      - group: bench.ctrlkit.dev
      - group: ""
        resources: [configmaps, secrets, services]
  - level: None
`

// An entry is a line of the audit log.
type entry struct {
	Stage, Verb    string
	StageTimestamp time.Time
	User           struct{ Username string }
	ObjectRef      struct{ Resource, Subresource, Namespace, Name string }
	ResponseStatus struct{ Code int }
	RequestObject  json.RawMessage
	ResponseObject struct {
		Kind     string
		Metadata metav1.ObjectMeta
	}
}

// A write is one that the API server has accepted.
type write struct {
	by, object string
	owner      string // the object of the ring that it is, or that controls it
	version    int64
	at         time.Time // the answer
	assigned   string    // the shard that the object has after the write, empty for none
	handsOver  bool      // it asks for the labels to be removed
}

// An audit is what the writes of shards say about who owns objects.
type audit struct {
	writes     map[string]int // by shard
	handovers  int
	owners     map[string]int // how many shards have written an object, by object
	violations []string
}

// readAudit reads the audit log. A shard may write an object of the ring that was assigned to it
// before, by the label that the last write of anyone has left, and is assigned to it still: the
// answer of the API server has the label. With the write that hands an object over, the label is
// gone, or it is that of the next shard, which the webhook of the sharder has put on at once. A
// child may be written by the shard that has its owner at that moment, whatever its own label is:
// that is only what the caches go by, and the sharder changes it a moment before or after. Resource
// versions are compared, which are in one order for all kinds in etcd.
func readAudit(log io.Reader, ring string) (*audit, error) {
	var all []write
	lines := bufio.NewReader(log)
	for {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			return judge(all), nil
		} else if err != nil {
			return nil, err
		}
		var e entry
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("the audit log has a line that is none: %w: %.200s", err, line)
		}
		if w, ok := e.write(ring); ok {
			all = append(all, w)
		}
	}
}

// write returns the write that an entry is, if it is an accepted one.
func (e *entry) write(ring string) (write, bool) {
	if e.Stage != "ResponseComplete" || e.ResponseStatus.Code/100 != 2 || e.ResponseObject.Kind == "Status" {
		return write{}, false
	}
	version, err := strconv.ParseInt(e.ResponseObject.Metadata.ResourceVersion, 10, 64)
	if err != nil {
		return write{}, false // a deletion that was complete at once
	}
	ref, answer := e.ObjectRef, e.ResponseObject.Metadata
	object := ref.Resource + " " + ref.Namespace + "/" + cmp.Or(ref.Name, answer.Name)
	owner := object
	if controller := metav1.GetControllerOfNoCopy(&answer); controller != nil && controller.Kind == "Widget" {
		owner = "widgets " + ref.Namespace + "/" + controller.Name
	}
	return write{
		by: e.User.Username, object: object, owner: owner, version: version, at: e.StageTimestamp,
		assigned:  answer.Labels[shardLabel+ring],
		handsOver: bytes.Contains(e.RequestObject, []byte(drainLabel+ring)),
	}, true
}

func judge(all []write) *audit {
	// The answer to the write that removes an object has the version of the write before it.
	slices.SortStableFunc(all, func(a, b write) int { return cmp.Or(cmp.Compare(a.version, b.version), a.at.Compare(b.at)) })
	a := &audit{writes: map[string]int{}, owners: map[string]int{}}
	by := map[string]map[string]bool{}
	before := map[string]string{} // the last label of each object
	for _, w := range all {
		was, known := before[w.owner]
		if w.owner == w.object {
			before[w.object] = w.assigned
		} else {
			w.assigned = was // its own label does not count
		}
		if !strings.HasPrefix(w.by, shardPrefix) {
			continue
		}
		a.writes[w.by]++
		if by[w.object] == nil {
			by[w.object] = map[string]bool{}
		}
		by[w.object][w.by] = true
		switch {
		case known && was != w.by || w.assigned != w.by && !w.handsOver:
			a.violations = append(a.violations, fmt.Sprintf("%s wrote %s, which was assigned to %q before, and to %q then (resource version %d)", w.by, w.object, was, w.assigned, w.version))
		case w.handsOver:
			a.handovers++
		}
	}
	for object, shards := range by {
		a.owners[object] = len(shards)
	}
	return a
}
