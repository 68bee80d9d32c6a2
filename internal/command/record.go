// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/ctrlkit/ctrlkit/internal/cluster/printable"
	"github.com/ctrlkit/ctrlkit/internal/cluster/private"
	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/internal/sim/recording"
)

// recordFlags are the flags of "ctrlkit record".
type recordFlags struct {
	explainFlags
	file   string
	kinds  []string
	unsure bool
}

func newRecordCommand() *cobra.Command {
	flags := new(recordFlags)
	cmd := &cobra.Command{
		Use:   "record -o FILE [KIND/NAME ...] [flags]",
		Short: "Record what an operator sees of a failure, for a bug report and a test",
		Long: `Record writes objects to a file: those that are named, what they own, are owned by and refer to, and
the definitions of their kinds. With --kinds it records all objects of some kinds, with what belongs to
these; with only a namespace, all objects there. If the operator keeps a journal, as for "ctrlkit explain",
its last reconciles of the objects are in the file, too. The cluster is only read.

Values of Secrets are replaced by stand-ins: equal values by equal ones, of the same length, which say
nothing of the values. Where a value of at least six bytes occurs elsewhere, it is replaced there, too: as
it is, in base64 and hexadecimal, escaped as JSON, YAML, URLs, HTML and shells do, and in each of these
within another; also the passwords in URLs and documents that are values. Any other part of a value is not
found, nor is its hash. If the letters of a value remain in their order, in a form that is not known, no
file is written without --unsure. Everything else is in the file as it is: read it before you attach it to
a bug report.

"ctrlkit replay" runs an operator on the file, and sim.From makes it a test.

Exit codes: 0 the file is written, 1 an error, 2 wrong usage.`,
		Example: `  ctrlkit record -o stuck.yaml database/db -n shop
  ctrlkit record -o stuck.yaml database/db -n shop --endpoint https://localhost:8443 --insecure
  ctrlkit record -o all.yaml --kinds database,backup     all objects of these kinds
  ctrlkit record -o shop.yaml -n shop                    everything in the namespace`,
		RunE: func(cmd *cobra.Command, args []string) error { return flags.record(cmd, args) },
	}
	set := cmd.Flags()
	flags.register(cmd)
	set.StringVarP(&flags.namespace, "namespace", "n", "", "the `NAMESPACE` of the objects (default that of the context; with --kinds, all)")
	set.StringVarP(&flags.file, "output", "o", "", "`FILE` to write, - is standard output")
	set.StringSliceVar(&flags.kinds, "kinds", nil, "`KIND,KIND` of which all objects are recorded")
	set.BoolVar(&flags.unsure, "unsure", false, "write the file although it may have values of Secrets in a form that is not known")
	return cmd
}

func (f *recordFlags) record(cmd *cobra.Command, args []string) error {
	switch {
	case f.file == "":
		return usageError(errors.New("-o FILE is missing: the file to write, such as -o stuck.yaml"))
	case len(args) > 0 && len(f.kinds) > 0:
		return usageError(errors.New("name objects, or give --kinds, but not both"))
	case len(args) == 0 && len(f.kinds) == 0 && f.namespace == "":
		return usageError(errors.New("nothing to record: name objects as KIND/NAME, or give --kinds, or a namespace with -n"))
	}
	if err := f.checkEndpoint(cmd.Flags().Changed("endpoint")); err != nil {
		return usageError(err)
	}
	config, namespace, err := f.cluster(f.namespace)
	if err != nil {
		return err
	}
	request, err := f.request(config, namespace, args)
	if err != nil {
		return err
	}
	recorded, secrets, err := recording.Collect(cmd.Context(), config, *request)
	if err != nil {
		return err
	}
	asked := f.addReports(cmd.Context(), config, recorded)
	recorded.Hide(secrets)
	if len(recorded.Unsure) > 0 && !f.unsure {
		return fmt.Errorf("the file may have values of Secrets in a form that is not known, and is not written: %s; leave out the objects that have them, "+
			"or write it with --unsure and search it yourself", strings.Join(recorded.Unsure, ", "))
	}
	if err := f.write(cmd.OutOrStdout(), recorded); err != nil {
		return err
	}
	f.summarize(cmd.ErrOrStderr(), recorded, asked)
	return nil
}

// request returns what the arguments name.
func (f *recordFlags) request(config *rest.Config, namespace string, args []string) (*recording.Request, error) {
	server := apiserver.New(apiserver.Options{})
	request := &recording.Request{Namespace: f.namespace, Serves: func(gvk schema.GroupVersionKind) bool {
		_, _, err := server.ResourceFor(gvk)
		return err == nil
	}}
	for _, arg := range args {
		kind, name, err := kindAndName([]string{arg})
		if err != nil {
			return nil, usageError(err)
		}
		mapping, err := mappingOf(config, kind)
		if err != nil {
			return nil, err
		}
		wanted := recording.Wanted{Resource: mapping.Resource, Name: name}
		if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			wanted.Namespace = namespace
		}
		request.Objects = append(request.Objects, wanted)
	}
	for _, kind := range f.kinds {
		mapping, err := mappingOf(config, kind)
		if err != nil {
			return nil, err
		}
		request.Kinds = append(request.Kinds, mapping.GroupVersionKind.GroupKind())
	}
	return request, nil
}

// mostReports is about how many objects the operator is asked at most.
const mostReports = 20

// addReports asks the operator about the subjects. It returns why there is no report, or nil.
func (f *recordFlags) addReports(ctx context.Context, config *rest.Config, r *recording.Recording) error {
	for i, s := range r.Subjects {
		if i == mostReports {
			return fmt.Errorf("it was asked about %d objects of %d", mostReports, len(r.Subjects))
		}
		gvk := schema.FromAPIVersionAndKind(s.APIVersion, s.Kind)
		report, _, err := f.report(ctx, config, operatorQuestion{kind: s.Kind, gvk: gvk, namespace: s.Namespace, name: s.Name})
		if err != nil {
			return err
		}
		text, err := json.Marshal(report)
		if err != nil {
			return fmt.Errorf("encoding its answer: %w", err)
		}
		content := map[string]any{}
		if err := json.Unmarshal(text, &content); err != nil {
			return fmt.Errorf("encoding its answer: %w", err)
		}
		r.Reports = append(r.Reports, content)
	}
	return nil
}

func (f *recordFlags) write(stdout io.Writer, r *recording.Recording) error {
	if f.file == "-" {
		return r.Write(stdout)
	}
	var text strings.Builder
	if err := r.Write(&text); err != nil {
		return err
	}
	if err := private.Write(f.file, []byte(text.String())); err != nil {
		return fmt.Errorf("writing the recording: %w", err)
	}
	return nil
}

// summarize says what is in the file.
func (f *recordFlags) summarize(w io.Writer, r *recording.Recording, asked error) {
	fmt.Fprintf(w, "%s: %s, %s\n", f.file, count(len(r.Objects), "object"), count(len(r.Reports), "report")+" of the operator")
	for _, s := range r.Subjects {
		fmt.Fprintf(w, "  %s: %s\n", printable.Line(s.String()), recording.StateOf(r.Find(s)))
	}
	if asked != nil {
		fmt.Fprintf(w, "The operator's last reconciles are not in it: %v\n", asked)
	}
	for _, what := range r.Unread {
		fmt.Fprintf(w, "Not in it: %s\n", what)
	}
	for _, what := range r.Left {
		fmt.Fprintf(w, "A value of a Secret is also a name, and still in the file: %s\n", what)
	}
	fmt.Fprintf(w, "Read it before you attach it to a bug report. To run an operator on it: ctrlkit replay %s OPERATOR\n", f.file)
}
