package command

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/ctrlkit/ctrlkit/explain"
)

// explainFlags are the flags of "ctrlkit explain".
type explainFlags struct {
	kubeconfig, context, namespace string
	endpoint, token, output        string
	insecure                       bool
}

// defaultEndpoint is where an operator on this machine serves its metrics, by the convention of kubebuilder.
const defaultEndpoint = "http://localhost:8080"

func newExplainCommand() *cobra.Command {
	flags := new(explainFlags)
	cmd := &cobra.Command{
		Use:   "explain KIND/NAME",
		Short: "Say why an object is as it is, and what to do about it",
		Long: `Explain asks the operator of an object, and the API server, why the object is as it is: which step has failed or waits, for what and since
when, when it is tried again, what made the last reconciles run and what they wrote, and who holds which finalizer.

The operator answers where it serves its metrics, with the same protection: at --endpoint, at $CTRLKIT_ENDPOINT, or at
` + defaultEndpoint + `. For one in a cluster, forward a port to it. Without it, the conditions, annotations and finalizers of the
object are explained.

Exit codes: 0 the object is ready, 1 it is not, is being deleted, does not exist or could not be read, 2 wrong usage.`,
		Example: `  ctrlkit explain cronjob.batch.ctrlkit.dev/hello
  kubectl ctrlkit explain database/db -n shop
  kubectl port-forward -n shop-system deploy/operator 8443 &
  ctrlkit explain database/db --endpoint https://localhost:8443 --insecure --token "$(kubectl create token -n shop-system explainer)"
  ctrlkit explain database/db -o json | jq '.report.controllers[].steps'`,
		Args: cobra.MatchAll(cobra.RangeArgs(1, 2), func(_ *cobra.Command, args []string) error {
			_, _, err := kindAndName(args)
			return err
		}),
		RunE: func(cmd *cobra.Command, args []string) error { return flags.run(cmd, args) },
	}
	set := cmd.Flags()
	set.StringVar(&flags.kubeconfig, "kubeconfig", "", "`FILE` that says which cluster (default as kubectl: $KUBECONFIG, ~/.kube/config)")
	set.StringVar(&flags.context, "context", "", "the `CONTEXT` in it")
	set.StringVarP(&flags.namespace, "namespace", "n", "", "the `NAMESPACE` of the object (default that of the context)")
	set.StringVar(&flags.endpoint, "endpoint", os.Getenv("CTRLKIT_ENDPOINT"), "`URL` of the operator's metrics server; \"none\" asks no operator")
	set.Lookup("endpoint").DefValue = ""
	set.StringVar(&flags.token, "token", "", "`TOKEN` for the endpoint (default that of the kubeconfig, if it has one)")
	set.BoolVar(&flags.insecure, "insecure", false, "do not check the certificate of the endpoint")
	set.StringVarP(&flags.output, "output", "o", "text", "text or json")
	return cmd
}

// kindAndName reads KIND/NAME and KIND NAME.
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
	if f.output != "text" && f.output != "json" {
		return &exitError{exitUsage, fmt.Errorf("--output %q: it is text or json", f.output)}
	}
	kind, name, err := kindAndName(args)
	if err != nil {
		return err
	}
	if err := f.checkEndpoint(cmd.Flags().Changed("endpoint")); err != nil {
		return &exitError{exitUsage, err}
	}
	config, namespace, err := f.cluster()
	if err != nil {
		return err
	}
	x, err := f.explanation(cmd.Context(), config, kind, namespace, name)
	if err != nil {
		return err
	}
	if f.output == "json" {
		encoder := json.NewEncoder(cmd.OutOrStdout())
		encoder.SetIndent("", "  ")
		err = encoder.Encode(x)
	} else {
		err = x.Write(cmd.OutOrStdout())
	}
	if err != nil {
		return fmt.Errorf("writing the explanation: %w", err)
	}
	if !x.Ready() {
		return &exitError{code: exitFound}
	}
	return nil
}

// noEndpoint is the value of --endpoint that asks no operator.
const noEndpoint = "none"

// checkEndpoint fills in the endpoint if none was given, and refuses what is no URL.
func (f *explainFlags) checkEndpoint(byFlag bool) error {
	from := "--endpoint"
	if !byFlag {
		from = "$CTRLKIT_ENDPOINT"
	}
	if f.endpoint == "" {
		f.endpoint = defaultEndpoint
	}
	base, err := url.Parse(f.endpoint)
	if f.endpoint != noEndpoint && (err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "") {
		return fmt.Errorf("%s %q is no URL such as https://localhost:8443", from, f.endpoint)
	}
	return nil
}

func (f *explainFlags) cluster() (*rest.Config, string, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: f.context}
	overrides.Context.Namespace = f.namespace
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, "", fmt.Errorf("finding a cluster: %w", err)
	}
	config.Timeout = 10 * time.Second
	config.WarningHandler = rest.NoWarnings{}
	namespace, _, err := loader.Namespace()
	if err != nil {
		return nil, "", fmt.Errorf("finding a namespace: %w", err)
	}
	return config, namespace, nil
}

// explanation asks the API server and the operator.
func (f *explainFlags) explanation(ctx context.Context, config *rest.Config, kind, namespace, name string) (*explain.Explanation, error) {
	mapping, err := mappingOf(config, kind)
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		namespace = ""
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for %s: %w", config.Host, err)
	}
	x := &explain.Explanation{Resource: mapping.Resource.GroupResource().String(), Now: time.Now()}
	obj, err := client.Resource(mapping.Resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case err == nil:
		x.Object = obj
	case !apierrors.IsNotFound(err):
		return nil, fmt.Errorf("reading %s %s: %w", mapping.GroupVersionKind.Kind, name, err)
	}
	x.Report, err = f.report(ctx, config, mapping.GroupVersionKind, namespace, name)
	if err != nil {
		x.NoReport = err.Error()
	}
	if x.Object == nil && x.Report == nil {
		if namespace != "" {
			name = namespace + "/" + name
		}
		return nil, fmt.Errorf("%s %s does not exist", mapping.GroupVersionKind.Kind, name)
	}
	return x, nil
}

// mappingOf finds what a person calls kind: a kind, a plural, a short name, with or without group.
func mappingOf(config *rest.Config, kind string) (*meta.RESTMapping, error) {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for %s: %w", config.Host, err)
	}
	cached := memory.NewMemCacheClient(client)
	mapper := restmapper.NewShortcutExpander(restmapper.NewDeferredDiscoveryRESTMapper(cached), cached, nil)
	gvr, gr := schema.ParseResourceArg(strings.ToLower(kind))
	if gvr != nil {
		if gvk, err := mapper.KindFor(*gvr); err == nil {
			return mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		}
	}
	gvk, err := mapper.KindFor(gr.WithVersion(""))
	if err != nil {
		return nil, fmt.Errorf("finding out what %q is: %w", kind, err)
	}
	return mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
}

// report asks the operator. The error says why there is none, and what helps.
func (f *explainFlags) report(ctx context.Context, config *rest.Config, gvk schema.GroupVersionKind, namespace, name string) (*explain.Report, error) {
	if f.endpoint == noEndpoint {
		return nil, errors.New("the operator was not asked; say with --endpoint where it serves its metrics")
	}
	base, err := url.Parse(f.endpoint)
	if err != nil {
		return nil, fmt.Errorf("--endpoint %q: %w", f.endpoint, err)
	}
	base.Path = strings.TrimSuffix(base.Path, "/") + explain.Path
	base.RawQuery = url.Values{"group": {gvk.Group}, "kind": {gvk.Kind}, "namespace": {namespace}, "name": {name}}.Encode()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, base.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("asking the operator at %s: %w", f.endpoint, err)
	}
	if token := cmp.Or(f.token, config.BearerToken); token != "" && base.Scheme == "https" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	client := &http.Client{Transport: &http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSClientConfig: &tls.Config{InsecureSkipVerify: f.insecure, MinVersion: tls.VersionTLS12}, //nolint:gosec // asked for by --insecure
	}}
	response, err := client.Do(request)
	if err != nil {
		if detailed := (*url.Error)(nil); errors.As(err, &detailed) {
			err = detailed.Err // without the address, which is said here
		}
		return nil, fmt.Errorf("the operator does not answer at %s; say with --endpoint where it serves its metrics (%w)", f.endpoint, err)
	}
	defer response.Body.Close() //nolint:errcheck // only read from
	body, err := io.ReadAll(io.LimitReader(response.Body, 16<<20))
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading what the operator at %s answers: %w", f.endpoint, err)
	case response.StatusCode == http.StatusNotFound && !bytes.HasPrefix(body, []byte(explain.Unknown)):
		return nil, fmt.Errorf("what answers at %s serves no explanations: an operator does with explain.Serve", f.endpoint)
	case response.StatusCode == http.StatusNotFound:
		return nil, fmt.Errorf("the operator at %s says: %s", f.endpoint, strings.TrimSpace(string(body)))
	case response.StatusCode == http.StatusUnauthorized, response.StatusCode == http.StatusForbidden:
		return nil, fmt.Errorf("the operator at %s answers %s: it needs, with --token, the token of somebody who may get %s", f.endpoint, response.Status, explain.Path)
	case response.StatusCode != http.StatusOK:
		text, _, _ := strings.Cut(strings.TrimSpace(string(body)), "\n")
		return nil, fmt.Errorf("the operator at %s answers %s: %.200s", f.endpoint, response.Status, text)
	}
	var report explain.Report
	if err := json.Unmarshal(body, &report); err != nil {
		return nil, fmt.Errorf("what answers at %s is no operator of this version of ctrlkit: %w", f.endpoint, err)
	}
	if report.Object.Kind != gvk.Kind || report.Object.Name != name {
		return nil, fmt.Errorf("what answers at %s is no operator of this version of ctrlkit: it was asked for %s %s", f.endpoint, gvk.Kind, name)
	}
	return &report, nil
}
