// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
)

// auditPolicy has the API server write down who has written what.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: None
    resources:
      - group: coordination.k8s.io
      - group: authorization.k8s.io
      - group: authentication.k8s.io
  - level: Metadata
    verbs: [create, update, patch, delete, deletecollection]
  - level: None
`

// A write is a request that writes, refused or not.
type write struct {
	by   string // the process, which is what its user agent begins with
	what string
	at   time.Time // when the API server has received it
}

// readWrites reads an audit log. Its last line may be unfinished.
func readWrites(log io.Reader) ([]write, error) {
	var all []write
	for lines := bufio.NewReader(log); ; {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("reading the audit log: %w", err)
		}
		var entry struct {
			Verb, UserAgent, RequestURI string
			RequestReceivedTimestamp    time.Time
			ResponseStatus              struct{ Code int }
		}
		if err := json.Unmarshal(line, &entry); err != nil {
			return nil, fmt.Errorf("the audit log has a line that is none: %w: %.200s", err, line)
		}
		by, _, _ := strings.Cut(entry.UserAgent, "/")
		all = append(all, write{by: by, what: fmt.Sprintf("%s %s, answered with %d", entry.Verb, entry.RequestURI, entry.ResponseStatus.Code), at: entry.RequestReceivedTimestamp})
	}
}

// writesSince returns the writes from a time on of the processes that by selects.
func writesSince(all []write, at time.Time, by func(process string) bool) (found []write) {
	for _, w := range all {
		if !w.at.Before(at) && by(w.by) {
			found = append(found, w)
		}
	}
	return found
}
