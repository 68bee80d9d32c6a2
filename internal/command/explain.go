// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/ctrlkit/ctrlkit/internal/cluster/printable"
	"github.com/ctrlkit/ctrlkit/internal/cluster/secrets"
	"github.com/ctrlkit/ctrlkit/internal/show/explanation"
	"github.com/ctrlkit/ctrlkit/internal/show/view"
)

// explainFlags are the flags of "ctrlkit explain".
type explainFlags struct {
	operatorFlags
	namespace string
	output    *choice
	all       bool
	watch     bool
}

func newExplainCommand() *cobra.Command {
	flags := new(explainFlags)
	cmd := &cobra.Command{
		Use:   "explain KIND/NAME | KIND NAME | --all [KIND]",
		Short: "Explain why an object is in its state, and what to do about it",
		Long: `Explain asks the operator of an object, and the API server, why the object is in its state: which
step has failed or waits, for what and since when, when it is retried, what caused the last
reconciles and what they wrote, and who owns which finalizer.

The operator answers where it serves its metrics, with the same protection: at --endpoint, at
$CTRLKIT_ENDPOINT, or at ` + defaultEndpoint + `. That of "ctrlkit run" is found by the KUBECONFIG that
this prints. To reach one in a cluster, forward a port to it.
Without the operator, the conditions, annotations and finalizers of the object are explained;
without the API server, what the operator knows.

With --all, all objects are grouped by what is in their way, those that are stuck first.

With --watch, the explanation is printed again when more than its ages has changed, in a terminal in
the place of the last one, until Ctrl-C.

Exit codes: 0 the object is ready, 1 it is not, is being deleted, does not exist or could not be
read, 2 wrong usage; 130 Ctrl-C has ended --watch.`,
		Example: `  ctrlkit explain cronjob.batch.ctrlkit.dev/hello
  ctrlkit explain database/db -n shop
  ctrlkit explain database/db -n shop --watch
  ctrlkit explain --all
  kubectl port-forward -n shop-system deploy/operator 8443 &
  export CTRLKIT_TOKEN=$(kubectl create token -n shop-system explainer)
  ctrlkit explain database/db --endpoint https://localhost:8443 --insecure
  ctrlkit explain database/db -o json | jq '.report.controllers[].steps'`,
		Args: func(cmd *cobra.Command, args []string) error {
			if flags.all && flags.watch {
				return &exitError{exitUsage, errors.New("--all with --watch: ctrlkit top shows all objects, again and again")}
			}
			if flags.all {
				return arguments(0, 1)(cmd, args)
			}
			if err := arguments(1, 2)(cmd, args); err != nil {
				return err
			}
			_, _, err := kindAndName(args)
			return err
		},
		RunE: func(cmd *cobra.Command, args []string) error { return flags.run(cmd, args) },

		ValidArgsFunction: flags.complete,
	}
	set := cmd.Flags()
	flags.register(cmd)
	set.StringVarP(&flags.namespace, "namespace", "n", "", "the `NAMESPACE` of the object (default that of the context)")
	set.BoolVar(&flags.all, "all", false, "explain all objects, of a kind or of all, grouped by what is in their way")
	set.BoolVarP(&flags.watch, "watch", "w", false, "explain it again whenever it changes, until Ctrl-C")
	flags.output = outputFlag(cmd, "text", "json")
	return cmd
}

// runAll explains all objects.
func (f *explainFlags) runAll(cmd *cobra.Command, args []string) error {
	ask, _, err := (&topFlags{explainFlags: *f, kinds: args}).source(cmd)
	if err != nil {
		return err
	}
	sum, err := ask(cmd.Context(), "")
	if err != nil {
		return err
	}
	if f.output.value == "json" {
		err = writeJSON(cmd.OutOrStdout(), sum)
	} else {
		sum.Controllers = nil
		_, err = io.WriteString(cmd.OutOrStdout(), strings.Join(topLines(sum, time.Now(), 0), "\n")+"\n")
	}
	if err == nil && slices.ContainsFunc(sum.Groups, func(g view.Group) bool { return g.State != view.Ready }) {
		return &exitError{code: exitFound}
	}
	return err
}

// kindAndName parses KIND/NAME and KIND NAME.
func kindAndName(args []string) (kind, name string, err error) {
	if len(args) == 2 {
		kind, name = args[0], args[1]
	} else {
		kind, name, _ = strings.Cut(args[0], "/")
	}
	if kind == "" || name == "" || strings.Contains(name, "/") {
		return "", "", fmt.Errorf("%q names no object: write KIND/NAME, such as cronjob.batch.ctrlkit.dev/hello", strings.Join(args, " "))
	}
	return kind, name, nil
}

func (f *explainFlags) run(cmd *cobra.Command, args []string) error {
	if f.all {
		return f.runAll(cmd, args)
	}
	kind, name, err := kindAndName(args)
	if err != nil {
		return err
	}
	if err := f.checkEndpoint(cmd.Flags().Changed("endpoint")); err != nil {
		return &exitError{exitUsage, err}
	}
	config, namespace, err := f.cluster(f.namespace)
	if err != nil {
		return err
	}
	ask := func(ctx context.Context) (*explanation.Explanation, error) {
		return f.explanation(ctx, config, kind, namespace, name)
	}
	if f.watch {
		return f.watchExplanation(cmd, ask)
	}
	x, err := ask(cmd.Context())
	if err != nil {
		return err
	}
	text, err := f.printed(x)
	if err == nil {
		_, err = io.WriteString(cmd.OutOrStdout(), text)
	}
	if err != nil {
		return fmt.Errorf("writing the explanation: %w", err)
	}
	if !x.Ready() {
		return &exitError{code: exitFound}
	}
	return nil
}

// explanation asks the API server and the operator, each also if the other does not answer.
func (f *explainFlags) explanation(
	ctx context.Context, config *rest.Config, kind, namespace, name string,
) (*explanation.Explanation, error) {
	x, gvk, namespace, unread, err := f.askBoth(ctx, config, operatorQuestion{kind: kind, namespace: namespace, name: name})
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if unread != nil {
		x.NoObject = unread.Error()
	}
	if err != nil {
		x.NoReport = err.Error()
	}
	switch {
	case x.Object != nil, x.Report != nil && unread == nil:
	case x.Report != nil:
		if unserved := (*unservedError)(nil); errors.As(unread, &unserved) {
			x.NoObject = fmt.Sprintf("the API server serves no %s any more: its definition was removed, and the objects with it; "+
				"install it again, if that was a mistake", x.Report.Object.Kind)
		}
	case unread != nil:
		if near := (*unservedError)(nil); errors.As(unread, &near) || f.endpoint == noEndpoint {
			return nil, unread
		}
		return nil, fmt.Errorf("%w; and %w", unread, err)
	default:
		text := fmt.Sprintf("%s %s does not exist", gvk.Kind, strings.TrimPrefix(namespace+"/"+name, "/"))
		if other := x.Ambiguity(name); other != "" {
			text += ". " + other
		}
		return nil, errors.New(text)
	}
	return x, nil
}

// readObject resolves kind, and reads the object into x if it exists. If the kind is not
// namespaced, namespace becomes empty.
func (f *explainFlags) readObject(
	ctx context.Context, config *rest.Config, x *explanation.Explanation, kind string, namespace *string, name string,
) (schema.GroupVersionKind, error) {
	mapping, err := mappingOf(config, kind)
	if err != nil {
		return schema.GroupVersionKind{}, err
	}
	gvk := mapping.GroupVersionKind
	x.Resource = mapping.Resource.GroupResource().String()
	x.OtherResources = othersOf(config, kind, mapping.Resource.GroupResource())
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		*namespace = ""
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return gvk, fmt.Errorf("making a client for %s: %w", config.Host, err)
	}
	obj, err := client.Resource(mapping.Resource).Namespace(*namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case err == nil:
		x.Object = obj
		if secrets.Is(obj) {
			x.Object = new(secrets.Values).RedactObject(obj)
		}
	case apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse) && apierrors.IsNotFound(err): // the path was not found, not the object
		return gvk, &unservedError{kind: kind}
	case !apierrors.IsNotFound(err):
		return gvk, fmt.Errorf("reading %s %s: %w", gvk.Kind, name, err)
	}
	return gvk, nil
}

// writeJSON writes x as JSON. It escapes control characters, and those that change the direction of
// writing, which JSON allows in strings.
func writeJSON(w io.Writer, x any) error {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(x); err != nil {
		return err
	}
	_, err := io.WriteString(w, printable.JSON(text.String()))
	return err
}
