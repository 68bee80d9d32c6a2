// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"testing"
)

// A write of a shard is a violation unless the object is assigned to it, or is handed over.
func TestReadAudit(t *testing.T) {
	line := func(user string, code int, labels, request string) string {
		return fmt.Sprintf(`{"stage":"ResponseComplete","verb":"patch","user":{"username":%q},"objectRef":{"resource":"widgets","namespace":"a","name":"w"},`+
			`"responseStatus":{"code":%d},"requestObject":%s,"responseObject":{"kind":"Widget","metadata":{"name":"w","resourceVersion":"7","labels":{%s}}}}`, user, code, request, labels)
	}
	assigned := func(to string) string { return fmt.Sprintf("%q:%q", shardLabel+"widgets", to) }
	drained := fmt.Sprintf(`{"metadata":{"labels":{%q:null}}}`, drainLabel+"widgets")
	for name, tt := range map[string]struct {
		line       string
		violations int
		writes     int
	}{
		"its own":                  {line: line("shard-1", 200, assigned("shard-1"), "{}"), writes: 1},
		"of another":               {line: line("shard-1", 200, assigned("shard-2"), "{}"), writes: 1, violations: 1},
		"of no one":                {line: line("shard-1", 200, "", "{}"), writes: 1, violations: 1},
		"handed over":              {line: line("shard-1", 200, "", drained), writes: 1},
		"handed over of another":   {line: line("shard-1", 200, assigned("shard-2"), drained), writes: 1, violations: 1},
		"refused":                  {line: line("shard-1", 409, assigned("shard-2"), "{}")},
		"of somebody who may":      {line: line("admin", 200, assigned("shard-2"), "{}")},
		"of another ring":          {line: line("shard-1", 200, strings.ReplaceAll(assigned("shard-1"), "widgets", "others"), "{}"), writes: 1, violations: 1},
		"a deletion, gone at once": {line: `{"stage":"ResponseComplete","verb":"delete","user":{"username":"shard-1"},"responseStatus":{"code":200},"responseObject":{"kind":"Status","metadata":{}}}`},
	} {
		a, err := readAudit(strings.NewReader(tt.line+"\n"), "widgets")
		if err != nil || len(a.violations) != tt.violations || a.writes["shard-1"] != tt.writes {
			t.Errorf("%s: %+v, %v", name, a, err)
		}
	}
	if _, err := readAudit(strings.NewReader("{\n"), "widgets"); err == nil {
		t.Error("a broken line is no error")
	}
}
