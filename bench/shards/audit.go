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
	User           struct{ Username string }
	ObjectRef      struct{ Resource, Subresource, Namespace, Name string }
	ResponseStatus struct{ Code int }
	RequestObject  json.RawMessage
	ResponseObject struct {
		Kind     string
		Metadata metav1.ObjectMeta
	}
}

// A write is one that the API server has accepted of a shard.
type write struct {
	by, object string
	version    int64
	assigned   string // the shard that the object has after the write
	handsOver  bool   // it asks for the labels to be removed
}

// An audit is what the writes of shards say about who owns objects.
type audit struct {
	writes     map[string]int // by shard
	handovers  int
	owners     map[string]int // how many shards have written an object, by object
	violations []string
}

// readAudit reads the audit log. A shard may write an object that the sharder has assigned to it when the
// write is accepted, and no other: the answer of the API server has the label. The one exception is the
// hand-over, which removes the label.
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

// write returns the write that an entry is, if it is one of a shard.
func (e *entry) write(ring string) (write, bool) {
	if e.Stage != "ResponseComplete" || e.ResponseStatus.Code/100 != 2 || !strings.HasPrefix(e.User.Username, shardPrefix) || e.ResponseObject.Kind == "Status" {
		return write{}, false
	}
	version, err := strconv.ParseInt(e.ResponseObject.Metadata.ResourceVersion, 10, 64)
	if err != nil {
		return write{}, false // a deletion that was complete at once
	}
	ref := e.ObjectRef
	return write{
		by: e.User.Username, object: ref.Resource + " " + ref.Namespace + "/" + cmp.Or(ref.Name, e.ResponseObject.Metadata.Name), version: version,
		assigned:  e.ResponseObject.Metadata.Labels[shardLabel+ring],
		handsOver: bytes.Contains(e.RequestObject, []byte(drainLabel+ring)),
	}, true
}

func judge(all []write) *audit {
	slices.SortFunc(all, func(a, b write) int { return cmp.Compare(a.version, b.version) })
	a := &audit{writes: map[string]int{}, owners: map[string]int{}}
	by := map[string]map[string]bool{}
	for _, w := range all {
		a.writes[w.by]++
		switch {
		case w.assigned == w.by:
			if by[w.object] == nil {
				by[w.object] = map[string]bool{}
			}
			by[w.object][w.by] = true
		case w.assigned == "" && w.handsOver:
			a.handovers++
		default:
			a.violations = append(a.violations, fmt.Sprintf("%s wrote %s, which was assigned to %q (resource version %d)", w.by, w.object, w.assigned, w.version))
		}
	}
	for object, shards := range by {
		a.owners[object] = len(shards)
	}
	return a
}
