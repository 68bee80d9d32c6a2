// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"bytes"
	"os"
	"path/filepath"
)

// webhooksVariable lets a program that kubebuilder has written serve no webhooks if it is "false".
const webhooksVariable = "ENABLE_WEBHOOKS"

// withoutWebhooks returns the environment that makes an operator serve no webhooks, if it knows it:
// in a cluster of the run nothing calls them, and there is no certificate without which they do not
// start. What the user has set is left alone.
func withoutWebhooks(p plane, project *Project, s *steps) []string {
	if _, set := os.LookupEnv(webhooksVariable); set || p == nil || !project.mentions(webhooksVariable) {
		return nil
	}
	s.remark("webhooks", "not served, by "+webhooksVariable+"=false: nothing calls them here, and they would need a certificate")
	return []string{webhooksVariable + "=false"}
}

// mentions reports whether a Go file of the package has a text.
func (p *Project) mentions(text string) bool {
	files, _ := filepath.Glob(filepath.Join(p.Dir, "*.go")) //nolint:errcheck // the pattern is well-formed
	for _, file := range files {
		if content, err := os.ReadFile(file); err == nil && bytes.Contains(content, []byte(text)) {
			return true
		}
	}
	return false
}
