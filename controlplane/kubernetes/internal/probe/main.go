// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: probe DIRECTORY")
		os.Exit(2)
	}
	klog.SetLogger(logr.Discard()) // it reports where validation tags differ from code
	if err := generate(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "probe:", err)
		os.Exit(1)
	}
}

// generate writes the files of the directory of package builtin.
func generate(directory string) error {
	samples, err := readSamples(filepath.Join(directory, "testdata", "samples.yaml"))
	if err != nil {
		return err
	}
	var records []record
	for _, s := range samples {
		more, err := s.run()
		if err != nil {
			return err
		}
		records = append(records, more...)
	}
	var rules []rule
	for _, f := range group(records) {
		if r := f.learn(); !r.empty() {
			rules = append(rules, r)
		}
	}
	rules = merge(rules, constants(records))
	if err := writeLines(filepath.Join(directory, "rules.json"), rules); err != nil {
		return err
	}
	return writeProbes(filepath.Join(directory, "testdata", "probes.jsonl.gz"), records)
}

// writeLines writes a JSON array with one element per line.
func writeLines(path string, rules []rule) error {
	var out bytes.Buffer
	out.WriteString("[\n")
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	for i, r := range rules {
		if err := encoder.Encode(r); err != nil {
			return err
		}
		if i+1 < len(rules) {
			out.Truncate(out.Len() - 1)
			out.WriteString(",\n")
		}
	}
	out.WriteString("]\n")
	return os.WriteFile(path, out.Bytes(), 0o644)
}
