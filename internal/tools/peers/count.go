// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
)

// counts are what became of the specs and tests of a suite.
type counts struct {
	passed, skipped int
	failures        []string
}

// report is the part of a suite in Ginkgo's report that is read here.
type report struct {
	SpecReports []struct {
		ContainerHierarchyTexts []string
		LeafNodeType            string
		LeafNodeText            string
		State                   string
		Failure                 struct {
			Message  string
			Location struct {
				FileName   string
				LineNumber int
			}
		}
	}
}

var (
	// outcome is the line in which package testing reports what became of a test.
	outcome = regexp.MustCompile(`(?m)^ *--- (PASS|FAIL|SKIP): (\S+)`)
	// runsSpecs finds the test that runs the specs, which are counted instead.
	runsSpecs = regexp.MustCompile(`(?m)^=== RUN +(\S+)\nRunning Suite: `)
)

// count counts Ginkgo's specs, in its report, and other tests, in the output of the suite.
func count(text, output []byte) (counts, error) {
	var c counts
	var reports []report
	if len(text) > 0 {
		if err := json.Unmarshal(text, &reports); err != nil {
			return c, fmt.Errorf("reading Ginkgo's report: %w", err)
		}
	}
	for _, r := range reports {
		c.addSpecs(r)
	}
	c.addTests(string(output))
	if c.passed+c.skipped+len(c.failures) == 0 {
		return c, fmt.Errorf("it ran no test:\n%s", output)
	}
	return c, nil
}

func (c *counts) addSpecs(r report) {
	for _, spec := range r.SpecReports {
		failed := spec.State != "passed" && spec.State != "skipped" && spec.State != "pending"
		if spec.LeafNodeType != "It" && !failed { // such as BeforeSuite
			continue
		}
		switch {
		case failed:
			at := spec.Failure.Location
			message, _, _ := strings.Cut(spec.Failure.Message, "\n")
			name := strings.Join(append(spec.ContainerHierarchyTexts, spec.LeafNodeType+" "+spec.LeafNodeText), " ")
			c.failures = append(c.failures, fmt.Sprintf("%s\n  %s:%d: %s", name, filepath.Base(at.FileName), at.LineNumber, message))
		case spec.State == "passed":
			c.passed++
		default:
			c.skipped++
		}
	}
}

func (c *counts) addTests(output string) {
	specs := ""
	if match := runsSpecs.FindStringSubmatch(output); match != nil {
		specs = match[1]
	}
	outcomes := outcome.FindAllStringSubmatch(output, -1)
	for i, match := range outcomes {
		name := match[2]
		if name == specs || i+1 < len(outcomes) && strings.HasPrefix(outcomes[i+1][2], name+"/") { // its parts follow it
			continue
		}
		switch match[1] {
		case "PASS":
			c.passed++
		case "FAIL":
			c.failures = append(c.failures, name)
		case "SKIP":
			c.skipped++
		}
	}
}
