// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCount(t *testing.T) {
	const report = `[{"SpecReports": [
		{"LeafNodeType": "BeforeSuite", "State": "passed"},
		{"LeafNodeType": "It", "State": "passed"}, {"LeafNodeType": "It", "State": "skipped"}, {"LeafNodeType": "It", "State": "pending"},
		{"ContainerHierarchyTexts": ["A client"], "LeafNodeType": "It", "LeafNodeText": "reads", "State": "timedout",
			"Failure": {"Message": "too slow\nby far", "Location": {"FileName": "/a/client_test.go", "LineNumber": 7}}},
		{"LeafNodeType": "AfterSuite", "State": "failed", "Failure": {"Message": "no end"}}]}]`
	const output = `=== RUN   TestPlain
--- PASS: TestPlain (0.00s)
=== RUN   TestSpecs
Running Suite: Client
--- FAIL: TestSpecs (1.00s)
=== RUN   TestParts
--- FAIL: TestParts (0.00s)
    --- PASS: TestParts/one (0.00s)
    --- FAIL: TestParts/two (0.00s)
    --- SKIP: TestParts/three (0.00s)
`
	got, err := count([]byte(report), []byte(output))
	want := counts{passed: 3, skipped: 3, failures: []string{
		"A client It reads\n  client_test.go:7: too slow", "AfterSuite \n  .:0: no end", "TestParts/two",
	}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(counts{})); err != nil || diff != "" {
		t.Errorf("error %v, counts:\n%s", err, diff)
	}
	if _, err := count(nil, []byte("panic: no server\n")); err == nil {
		t.Error("a suite that ran no test is no error")
	}
}
