// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/ctrlkit/ctrlkit/install"
)

func newFinalizerPolicyCommand() *cobra.Command {
	var finalizer, output string
	cmd := &cobra.Command{
		Use:   "finalizer-policy --finalizer NAME RESOURCE.VERSION.GROUP",
		Short: "Write the admission policy that puts a finalizer on each object as it is created",
		Long: `Finalizer-policy writes a MutatingAdmissionPolicy and its binding. With them the API server puts the operator's finalizer on each object as it is
created: that saves a write, and such a finalizer can't be lost when the object is deleted at the same instant.

It is not needed: an operator puts its finalizer on objects that come without it.`,
		Example: `  ctrlkit generate finalizer-policy --finalizer example.com/backup backups.v1.example.com | kubectl apply -f -
  ctrlkit generate finalizer-policy --finalizer example.com/backup -o config/admission/policy.yaml backups.v1.example.com`,
		Args: arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if finalizer == "" {
				return usageError(errors.New("--finalizer is missing: the name of the finalizer, as the operator has it"))
			}
			text, err := finalizerPolicy(args[0], finalizer)
			if err != nil {
				return &exitError{exitUsage, err}
			}
			if output == "" {
				_, err = cmd.OutOrStdout().Write(text)
				return err
			}
			return writeIfOther(output, text)
		},
	}
	cmd.Flags().StringVar(&finalizer, "finalizer", "", "the `NAME` of the finalizer, as the operator has it (step.Engine.Finalizer)")
	cmd.Flags().StringVarP(&output, "output", "o", "", "the `FILE` to write; standard output without it")
	return cmd
}

// finalizerPolicy returns the policy and its binding as YAML.
func finalizerPolicy(resource, finalizer string) ([]byte, error) {
	gvr, _ := schema.ParseResourceArg(resource)
	if gvr == nil {
		return nil, fmt.Errorf("%q is not RESOURCE.VERSION.GROUP, such as backups.v1.example.com", resource)
	}
	policy, binding, err := install.FinalizerPolicy(*gvr, finalizer)
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	fmt.Fprintf(&text, "# Written by ctrlkit generate finalizer-policy --finalizer %s %s; DO NOT EDIT.\n", finalizer, resource)
	for i, obj := range []any{policy, binding} {
		data, err := yaml.Marshal(obj)
		if err != nil {
			return nil, fmt.Errorf("writing YAML: %w", err)
		}
		if i > 0 {
			text.WriteString("---\n")
		}
		text.Write(bytes.ReplaceAll(data, []byte("  creationTimestamp: null\n"), nil))
	}
	return text.Bytes(), nil
}

// writeIfOther writes a file, and its directory, unless it holds that already.
func writeIfOther(path string, text []byte) error {
	old, err := os.ReadFile(path)
	if err == nil && bytes.Equal(old, text) {
		return nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o644)
}
