// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/ctrlkit/ctrlkit/internal/engine/orphans"
	"github.com/ctrlkit/ctrlkit/internal/sim/run"
)

// orphansFlags are the flags of "ctrlkit orphans".
type orphansFlags struct {
	operatorFlags
	output *choice
}

// orphansWait is the longest wait for an answer: the operator gives its audits up before that.
const orphansWait = 90 * time.Second

func newOrphansCommand() *cobra.Command {
	flags := new(orphansFlags)
	cmd := &cobra.Command{
		Use:   "orphans",
		Short: "List external resources without an object, and objects without their resource",
		Long: `Orphans asks an operator to compare its external systems with the objects of the cluster, and lists
the resources whose object is gone or has another resource, and the objects whose resource is gone.

The operator answers where it serves its metrics, as for "ctrlkit explain": at --endpoint, at
$CTRLKIT_ENDPOINT, or at ` + defaultEndpoint + `. It reads the objects from the API server, and has
to serve audits: external.ServeAudits. A resource that stores no owner is not listed.

Exit codes: 0 nothing is orphaned, 1 the operator does not answer, serves no audits, or could not
audit a system, 2 wrong usage, 3 something is orphaned, and listed.`,
		Example: `  ctrlkit orphans
  ctrlkit orphans --endpoint http://localhost:9090
  kubectl port-forward -n shop-system deploy/operator 8443 &
  export CTRLKIT_TOKEN=$(kubectl create token -n shop-system explainer)
  ctrlkit orphans --endpoint https://localhost:8443 --insecure
  ctrlkit orphans -o json | jq -r '.systems[].orphans[]?.id'`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error { return flags.run(cmd) },
	}
	flags.register(cmd)
	flags.output = outputFlag(cmd, "text", "json")
	return cmd
}

func (f *orphansFlags) run(cmd *cobra.Command) error {
	if err := f.checkEndpoint(cmd.Flags().Changed("endpoint")); err != nil {
		return &exitError{exitUsage, err}
	}
	if f.endpoint == noEndpoint {
		return &exitError{exitUsage, errors.New("only an operator knows its external systems: set --endpoint to where it serves its metrics")}
	}
	report, err := f.report(cmd)
	if err != nil {
		return err
	}
	if f.output.value == "json" {
		err = writeJSON(cmd.OutOrStdout(), report)
	} else if report.Found() > 0 || report.Err() == nil {
		err = report.Write(cmd.OutOrStdout())
	}
	switch {
	case err != nil:
		return fmt.Errorf("writing the report: %w", err)
	case report.Found() > 0:
		return &exitError{exitOrphans, report.Err()}
	}
	return report.Err()
}

// report asks the operator.
func (f *orphansFlags) report(cmd *cobra.Command) (*orphans.Report, error) {
	config, _, err := f.cluster("")
	if err != nil && f.kubeconfig != (run.Kubeconfig{}) {
		return nil, err // else only the token of the kubeconfig is missing
	}
	got, err := f.get(cmd.Context(), config, orphans.Path, url.Values{}, orphansWait)
	switch {
	case err != nil:
		return nil, err
	case got.code == http.StatusNotFound:
		return nil, fmt.Errorf("what answers at %s serves no audits: an operator needs external.ServeAudits", f.at())
	}
	if err := f.refusal(got, orphans.Path); err != nil {
		return nil, err
	}
	report := &orphans.Report{}
	return report, f.decode(got, report)
}
