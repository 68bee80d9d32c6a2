// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// A write of a shard is a violation unless the object was assigned to it, and still is or is handed
// over.
func TestReadAudit(t *testing.T) {
	version := 0
	line := func(user string, code int, labels, request string) string {
		version++
		return fmt.Sprintf(`{"stage":"ResponseComplete","verb":"patch","user":{"username":%q},"objectRef":{"resource":"widgets","namespace":"a","name":"w"},`+
			`"responseStatus":{"code":%d},"requestObject":%s,"responseObject":{"kind":"Widget","metadata":{"name":"w","resourceVersion":"%d","labels":{%s}}}}`+"\n", user, code, request, version, labels)
	}
	to := func(shard string) string { return fmt.Sprintf("%q:%q", shardLabel+"widgets", shard) }
	drain := fmt.Sprintf(`{"metadata":{"labels":{%q:null}}}`, drainLabel+"widgets")
	created := func(shard string) string { return line("admin", 201, to(shard), "{}") }
	child := func(user, labels string) string {
		of := strings.ReplaceAll(line(user, 201, labels, "{}"), `"name":"w"`, `"name":"child"`)
		of = strings.Replace(of, `"resource":"widgets"`, `"resource":"secrets"`, 1)
		return strings.Replace(of, `"labels"`, `"ownerReferences":[{"controller":true,"kind":"Widget","name":"w"}],"labels"`, 1)
	}
	at := func(second int, line string) string {
		return strings.Replace(line, "{", fmt.Sprintf(`{"stageTimestamp":"2026-01-01T00:00:%02d.000000Z",`, second), 1)
	}
	// same gives a write the version of the one before it, as that which removes the last finalizer has.
	same := func(line string) string {
		of := regexp.MustCompile(`"resourceVersion":"(\d+)"`)
		n, _ := strconv.Atoi(of.FindStringSubmatch(line)[1])
		return of.ReplaceAllString(line, fmt.Sprintf(`"resourceVersion":"%d"`, n-1))
	}
	for name, tt := range map[string]struct {
		log                           string
		violations, writes, handovers int
	}{
		"its own":                       {log: created("shard-1") + line("shard-1", 200, to("shard-1"), "{}"), writes: 1},
		"a child":                       {log: created("shard-1") + child("shard-1", to("shard-1")), writes: 1},
		"a child that moves before":     {log: created("shard-1") + child("shard-1", to("shard-2")), writes: 1},
		"a child of another":            {log: created("shard-2") + child("shard-1", to("shard-2")), writes: 1, violations: 1},
		"a child that moves after":      {log: created("shard-2") + child("shard-1", to("shard-1")), writes: 1, violations: 1},
		"of another":                    {log: created("shard-2") + line("shard-1", 200, to("shard-2"), "{}"), writes: 1, violations: 1},
		"of no one":                     {log: line("shard-1", 200, "", "{}"), writes: 1, violations: 1},
		"handed over":                   {log: created("shard-1") + line("shard-1", 200, "", drain), writes: 1, handovers: 1},
		"handed over, assigned at once": {log: created("shard-1") + line("shard-1", 200, to("shard-2"), drain), writes: 1, handovers: 1},
		"handed over of another":        {log: created("shard-2") + line("shard-1", 200, "", drain), writes: 1, violations: 1},
		"handed over twice":             {log: created("shard-1") + line("shard-1", 200, to("shard-2"), drain) + line("shard-1", 200, to("shard-2"), drain), writes: 2, handovers: 1, violations: 1},
		"taken while it was written":    {log: created("shard-1") + line("sharder", 200, to("shard-2"), "{}") + line("shard-1", 200, to("shard-2"), "{}"), writes: 1, violations: 1},
		"refused":                       {log: created("shard-2") + line("shard-1", 409, to("shard-2"), "{}")},
		"of a user":                     {log: created("shard-2") + line("admin", 200, to("shard-2"), "{}")},
		"of another ring":               {log: line("shard-1", 200, strings.ReplaceAll(to("shard-1"), "widgets", "others"), "{}"), writes: 1, violations: 1},
		"deleted, with one version for two writes": {log: created("shard-1") + at(2, line("shard-1", 200, "", drain)) + same(at(1, line("shard-1", 200, to("shard-1"), "{}"))), writes: 2, handovers: 1},
		"a deletion, gone at once":                 {log: `{"stage":"ResponseComplete","verb":"delete","user":{"username":"shard-1"},"responseStatus":{"code":200},"responseObject":{"kind":"Status","metadata":{}}}` + "\n"},
	} {
		a, err := readAudit(strings.NewReader(tt.log), "widgets")
		if err != nil || len(a.violations) != tt.violations || a.writes["shard-1"] != tt.writes || a.handovers != tt.handovers {
			t.Errorf("%s: %+v, %v", name, a, err)
		}
	}
	if _, err := readAudit(strings.NewReader("{\n"), "widgets"); err == nil {
		t.Error("a broken line is no error")
	}
}
