// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ctrlkit/ctrlkit/internal/orphans"
)

// importFlags are the flags of "ctrlkit import".
type importFlags struct {
	operatorFlags
	namespace, selector string
	output              *choice
}

func newImportCommand() *cobra.Command {
	flags := new(importFlags)
	cmd := &cobra.Command{
		Use:   "import [NAME]",
		Short: "Print manifests of external resources that no object has",
		Long: `Import asks an operator which resources its external systems have that no object has and no owner is
stored with, and prints a manifest for each: with its id, and a spec as the resource is. When you
apply them, the operator adopts the resources.

NAME is the id of a resource, or a pattern with * and ?. The operator answers where it serves its
metrics, as for "ctrlkit orphans". It has to serve imports: external.ServeImports.

Exit codes: 0 all manifests were printed, 1 the operator does not answer, serves no imports, or not all
resources could be read, 2 wrong usage.`,
		Example: `  ctrlkit import
  ctrlkit import 'ORDERS*' -n shop | kubectl diff -f -
  ctrlkit import -n shop -l team=web > streams.yaml
  ctrlkit import -o json | jq '.systems[].objects[].metadata.name'`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return flags.run(cmd, args) },
	}
	flags.register(cmd.Flags())
	cmd.Flags().StringVarP(&flags.namespace, "namespace", "n", "", "the `NAMESPACE` of objects that the operator gives none (default that of the context)")
	cmd.Flags().StringVarP(&flags.selector, "selector", "l", "", "label selector for the objects, which may have labels made of tags")
	flags.output = outputFlag(cmd, "yaml", "json")
	return cmd
}

func (f *importFlags) run(cmd *cobra.Command, args []string) error {
	if err := f.checkEndpoint(cmd.Flags().Changed("endpoint")); err != nil {
		return &exitError{exitUsage, err}
	}
	if f.endpoint == noEndpoint {
		return &exitError{exitUsage, errors.New("only an operator knows its external systems: set --endpoint to where it serves its metrics")}
	}
	config, namespace, err := f.cluster(f.namespace)
	if err != nil && (f.kubeconfig != "" || f.context != "") {
		return err // else only the token of the kubeconfig is missing
	}
	query := url.Values{"selector": {f.selector}, "namespace": {cmp.Or(namespace, f.namespace, "default")}}
	if len(args) == 1 {
		query.Set("name", args[0])
	}
	got, err := f.get(cmd.Context(), config, orphans.ImportPath, query, orphansWait)
	switch {
	case err != nil:
		return err
	case got.code == http.StatusNotFound:
		return fmt.Errorf("what answers at %s serves no imports: an operator needs external.ServeImports", f.endpoint)
	case got.code == http.StatusBadRequest:
		return &exitError{exitUsage, errors.New(strings.TrimSpace(string(got.body)))}
	}
	if err := f.refusal(got, orphans.ImportPath); err != nil {
		return err
	}
	report := &orphans.Imports{}
	if err := f.decode(got, report); err != nil {
		return err
	}
	if f.output.value == "json" {
		err = writeJSON(cmd.OutOrStdout(), report)
	} else {
		err = report.Write(cmd.OutOrStdout())
	}
	if err == nil && report.Found() == 0 && report.Err() == nil {
		fmt.Fprintln(cmd.ErrOrStderr(), "nothing to import: each resource has an object or an owner")
	}
	if err != nil {
		return fmt.Errorf("writing the manifests: %w", err)
	}
	return report.Err()
}
