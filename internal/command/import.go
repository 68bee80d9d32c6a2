// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/ctrlkit/ctrlkit/internal/engine/orphans"
	"github.com/ctrlkit/ctrlkit/internal/sim/run"
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
apply them, the operator adopts the resources, if it may: its author or the owner of the namespace
has to allow that, and a comment on top says how.

NAME is the id of a resource, or a list of patterns with * and ?, separated by commas; a backslash
takes the meaning from the character after it. Only what NAME selects is read, and what --selector
selects, where the operator knows the labels before. A name that is taken gets a suffix.

The operator answers where it serves its metrics, as for "ctrlkit orphans". It has to serve imports:
external.ServeImports. It reads the resources as fast as its limits for the system allow.

Exit codes: 0 all manifests were printed, 1 the operator does not answer, serves no imports, or not all
resources could be read, 2 wrong usage.`,
		Example: `  ctrlkit import
  ctrlkit import 'ORDERS*' -n shop | kubectl diff -f -
  ctrlkit import -n shop -l team=web > streams.yaml
  ctrlkit import -o json | jq '.systems[].objects[].metadata.name'`,
		Args: arguments(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error { return flags.run(cmd, args) },
	}
	flags.register(cmd)
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
	if err != nil && f.kubeconfig != (run.Kubeconfig{}) {
		return err // else only the token of the kubeconfig is missing
	}
	query := url.Values{"selector": {f.selector}, "namespace": {cmp.Or(namespace, f.namespace, "default")}}
	if len(args) == 1 {
		query.Set("name", args[0])
	}
	got, err := f.ask(cmd, config, query)
	switch {
	case err != nil:
		return err
	case got.code == http.StatusNotFound:
		return fmt.Errorf("what answers at %s serves no imports: an operator needs external.ServeImports", f.at())
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
	if report.Systems == nil {
		return fmt.Errorf("the operator at %s has ended before it had read all resources: ask again", f.at())
	}
	if f.output.value == "json" {
		err = writeJSON(cmd.OutOrStdout(), report)
	} else {
		err = report.Write(cmd.OutOrStdout())
	}
	if err == nil && report.Found() == 0 && report.Err() == nil {
		which := "each resource"
		if len(args) == 1 || f.selector != "" {
			which = "each resource that is selected, if there is one,"
		}
		fmt.Fprintln(cmd.ErrOrStderr(), "nothing to import:", which, "has an object or an owner")
	}
	if err != nil {
		return fmt.Errorf("writing the manifests: %w", err)
	}
	return report.Err()
}

// ask asks the operator, and shows in a terminal how far it is. It gives up when the operator has said
// nothing for a while.
func (f *importFlags) ask(cmd *cobra.Command, config *rest.Config, query url.Values) (answer, error) {
	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	silence := time.AfterFunc(orphansWait, cancel)
	defer silence.Stop()
	shown := newProgressWriter(cmd.ErrOrStderr())
	defer shown.clear()
	got, err := f.read(ctx, config, orphans.ImportPath, query, func(value json.RawMessage) {
		silence.Reset(orphansWait)
		var now orphans.Imports
		if json.Unmarshal(value, &now) == nil && now.Progress != nil {
			shown.line("%d of %d resources are read", now.Progress.Done, now.Progress.Of)
		}
	})
	if ctx.Err() != nil && cmd.Context().Err() == nil {
		err = fmt.Errorf("the operator at %s has said nothing for %v", f.at(), orphansWait)
	}
	return got, err
}
