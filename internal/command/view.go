// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/ctrlkit/ctrlkit/internal/show/localhost"
	"github.com/ctrlkit/ctrlkit/internal/show/view"
)

// viewFlags are the flags of "ctrlkit view".
type viewFlags struct {
	operatorFlags
	namespace, remotePort string
	port                  int
	kinds                 []string
}

func newViewCommand() *cobra.Command {
	flags := new(viewFlags)
	cmd := &cobra.Command{
		Use:   "view [NAMESPACE/LEASE]",
		Short: "Show a live page about an operator, in the browser",
		Long: `View serves a live page about an operator on this machine, and prints its address: the objects grouped by what is in
their way, what can be done about each, and reconciles on an axis of time.

The page comes from the operator, if it serves one (operator.WithPage), and has then its steps, causes and writes. View
asks where the operator serves its metrics, as "ctrlkit explain" does: at --endpoint, at $CTRLKIT_ENDPOINT, or at
` + defaultEndpoint + `. With NAMESPACE/LEASE it forwards a port to the Pod that holds the Lease, which is the leader.

Of any other operator the page shows what the API server alone says: objects of all kinds that have a definition, or
those of --kind, with their conditions, events, owned objects and writers.

The address has a key, without which nothing is served. It is for this machine only.

Exit codes: 0 Ctrl-C, 1 there is neither an operator nor a cluster to ask, 2 wrong usage.`,
		Example: `  ctrlkit view                                             an operator on this machine, or the cluster alone
  ctrlkit view --endpoint http://localhost:9090
  export CTRLKIT_TOKEN=$(kubectl create token -n shop-system explainer)
  ctrlkit view shop-system/shop.example.com --insecure
  ctrlkit view --endpoint none --kind widgets.example.com -n shop`,
		Args: arguments(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error { return flags.run(cmd, args) },
	}
	flags.register(cmd)
	cmd.Flags().StringVarP(&flags.namespace, "namespace", "n", "", "show the objects of this `NAMESPACE` only, if the operator serves no page")
	cmd.Flags().StringSliceVar(&flags.kinds, "kind", nil, "show the objects of this `KIND`, with its group: widgets.example.com; repeatable")
	cmd.Flags().IntVar(&flags.port, "port", 0, "serve at this `PORT` of the machine (default any)")
	cmd.Flags().StringVar(&flags.remotePort, "remote-port", "8443", "`PORT` of the operator's metrics server in its Pod, for NAMESPACE/LEASE")
	return cmd
}

func (f *viewFlags) run(cmd *cobra.Command, args []string) error {
	given := cmd.Flags().Changed("endpoint")
	if err := f.checkEndpoint(given); err != nil {
		return &exitError{exitUsage, err}
	}
	if len(args) == 1 && (given || strings.Count(args[0], "/") != 1) {
		return &exitError{exitUsage, fmt.Errorf("%q: name the Lease of the operator as NAMESPACE/LEASE, without --endpoint", args[0])}
	}
	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	config, _, err := f.cluster("")
	if err != nil {
		if len(args) == 1 || f.endpoint == noEndpoint {
			return err
		}
		config = nil // the operator alone may answer
	} else {
		config.Timeout = 0 // watches are not to end
	}
	if len(args) == 1 {
		if f.endpoint, err = f.forward(ctx, cmd, config, args[0]); err != nil {
			return err
		}
	}
	page, from, err := f.page(ctx, config)
	if err != nil {
		return err
	}
	address, ended, err := serveOnThisMachine(ctx, page, f.port)
	if err != nil {
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s\nThe page is at %s until Ctrl-C\n", from, address)
	return <-ended
}

// serveOnThisMachine serves a page on this machine until the context is done, and returns its address with
// its key. The channel receives how it has ended.
func serveOnThisMachine(ctx context.Context, page http.Handler, port int) (address string, ended <-chan error, err error) {
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return "", nil, fmt.Errorf("serving the page: %w", err)
	}
	guarded := newGuarded(page)
	server := &http.Server{Handler: localhost.Guard(guarded), ReadHeaderTimeout: 10 * time.Second, BaseContext: func(net.Listener) context.Context { return ctx }}
	end := make(chan error, 1)
	go func() {
		err := server.Serve(listener)
		if errors.Is(err, http.ErrServerClosed) {
			err = nil
		}
		end <- err
	}()
	context.AfterFunc(ctx, func() { _ = server.Close() })
	return guarded.address(listener.Addr().String()), end, nil
}

// A runPage is the page of "ctrlkit run": that of the operator, once it serves one, and before that
// the one of the cluster.
type runPage struct {
	ctx      context.Context //nolint:containedctx // of the run
	cluster  http.Handler
	others   http.Handler // shows what the operator does not follow
	asking   viewFlags
	operator atomic.Pointer[http.Handler]
}

// lessInRun is what the page of a run says while the operator has none.
const lessInRun = `They are here once the operator has started, if it calls operator.Observe of ctrlkit: "ctrlkit create api" adds that to a project of kubebuilder's.`

// pageOfRun serves the page of a run. See run.Options.
func pageOfRun(ctx context.Context, config *rest.Config, endpoint string) (address string, err error) {
	cluster, err := view.OfCluster(ctx, config, "", lessInRun)
	if err != nil {
		return "", err
	}
	page := &runPage{ctx: ctx, cluster: cluster, others: surroundings(ctx, config), asking: viewFlags{operatorFlags: operatorFlags{endpoint: endpoint}}}
	address, _, err = serveOnThisMachine(ctx, page, 0)
	return address, err
}

func (p *runPage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if p.operator.Load() == nil && r.URL.Query().Get("stream") == "" {
		if page, err := p.asking.operatorPage(p.ctx, nil, p.others); err == nil {
			p.operator.Store(&page)
		}
	}
	if page := p.operator.Load(); page != nil {
		(*page).ServeHTTP(w, r)
		return
	}
	p.cluster.ServeHTTP(w, r)
}

// page returns the page of the operator, or one of the cluster alone, and in a line which of them.
func (f *viewFlags) page(ctx context.Context, config *rest.Config) (page http.Handler, from string, err error) {
	why := "the operator was not asked: --endpoint none"
	if f.endpoint != noEndpoint {
		proxy, err := f.operatorPage(ctx, config, surroundings(ctx, config))
		if err == nil {
			return proxy, "The operator at " + f.at() + " serves it", nil
		}
		if config == nil {
			return nil, "", err
		}
		why = err.Error()
	}
	if err := reach(ctx, config); err != nil {
		return nil, "", fmt.Errorf("%w; and %s", err, why)
	}
	var kinds []schema.GroupKind
	for _, kind := range f.kinds {
		mapping, err := mappingOf(config, kind)
		if err != nil {
			return nil, "", fmt.Errorf("--kind %s: %w", kind, err)
		}
		kinds = append(kinds, mapping.GroupVersionKind.GroupKind())
	}
	page, err = view.OfCluster(ctx, config, f.namespace, why, kinds...)
	return page, "It shows what the API server at " + config.Host + " says: " + why, err
}

// surroundings returns the page that shows single objects of any kind, as the user may read them; nil
// without a cluster.
func surroundings(ctx context.Context, config *rest.Config) http.Handler {
	if config == nil {
		return nil
	}
	page, err := view.OfCluster(ctx, config, "", "", []schema.GroupKind{}...)
	if err != nil {
		return nil
	}
	return page
}

// errUnknown is the answer of an operator that does not follow the kind of an object.
var errUnknown = errors.New("the operator does not follow objects of this kind")

// operatorPage returns a proxy for the page of the operator, if it serves one. Objects of kinds that it does
// not follow, such as the Deployments of its objects, are shown by another page, if there is one.
func (f *viewFlags) operatorPage(ctx context.Context, config *rest.Config, others http.Handler) (http.Handler, error) {
	if err := f.servesPage(ctx, config); err != nil {
		return nil, err
	}
	base, _, err := f.address()
	if err != nil {
		return nil, err
	}
	token, err := f.bearer(config)
	if err != nil {
		return nil, err
	}
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(base)
			r.Out.URL.Path = strings.TrimSuffix(base.Path, "/") + strings.TrimSuffix(view.Path, "/") + r.In.URL.Path
			r.Out.Header.Del("Cookie")
			r.Out.Header.Del("Authorization")
			if password, ok := base.User.Password(); ok {
				r.Out.SetBasicAuth(base.User.Username(), password)
			}
			if token != "" && base.Scheme == "https" {
				r.Out.Header.Set("Authorization", "Bearer "+token)
			}
		},
		FlushInterval: -1, // events are sent at once
		Transport:     f.transport(),
		ModifyResponse: func(r *http.Response) error {
			if others != nil && r.Header.Get(view.UnknownHeader) != "" {
				return errUnknown
			}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if errors.Is(err, errUnknown) {
				others.ServeHTTP(w, r)
				return
			}
			http.Error(w, "the operator at "+f.at()+" does not answer: "+err.Error(), http.StatusBadGateway)
		},
	}, nil
}

// forward runs kubectl to forward a port of this machine to the Pod that holds a Lease, and returns
// the address.
func (f *viewFlags) forward(ctx context.Context, cmd *cobra.Command, config *rest.Config, name string) (string, error) {
	namespace, name, _ := strings.Cut(name, "/")
	leases, err := leasesIn(ctx, config, namespace)
	if err != nil {
		return "", fmt.Errorf("reading the Leases of namespace %s: %w", namespace, err)
	}
	i := slices.IndexFunc(leases, func(l coordinationv1.Lease) bool { return l.Name == name })
	if i < 0 {
		return "", fmt.Errorf("there is no Lease %s/%s: kubectl get lease -n %s lists them", namespace, name, namespace)
	}
	pod, ok := holderOf(&leases[i])
	if !ok {
		return "", fmt.Errorf("no Pod holds the Lease %s/%s now: is the operator running?", namespace, name)
	}
	args := []string{"port-forward", "--address", "127.0.0.1", "-n", namespace, "pod/" + pod, ":" + f.remotePort}
	for flag, value := range map[string]string{"--kubeconfig": f.kubeconfig.File, "--context": f.kubeconfig.Context} {
		if value != "" {
			args = append(args, flag, value)
		}
	}
	kubectl := exec.CommandContext(ctx, "kubectl", args...) //nolint:gosec // the names are those of a Lease, which are checked
	out, err := kubectl.StdoutPipe()
	if err != nil {
		return "", err
	}
	said := &bytes.Buffer{}
	kubectl.Stderr = said
	if err := kubectl.Start(); err != nil {
		return "", fmt.Errorf("forwarding a port needs kubectl; without it, forward port %s of pod %s/%s yourself and give --endpoint: %w", f.remotePort, namespace, pod, err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if _, rest, ok := strings.Cut(lines.Text(), "Forwarding from "); ok {
			address, _, _ := strings.Cut(rest, " ")
			go func() { _, _ = io.Copy(io.Discard, out); _ = kubectl.Wait() }()
			return "https://" + address, nil
		}
	}
	err = errors.Join(lines.Err(), kubectl.Wait())
	return "", fmt.Errorf("kubectl %s: %s (%w)", strings.Join(args, " "), strings.TrimSpace(said.String()), err)
}

// guarded serves a page to those who know its key: at first in the address, then in a cookie.
type guarded struct {
	page        http.Handler
	key, cookie string // the name of the cookie: those of all ports of a machine are sent to each
}

func newGuarded(page http.Handler) *guarded {
	return &guarded{page, rand.Text(), "ctrlkit-" + rand.Text()}
}

// address is where the page is, with its key.
func (g *guarded) address(host string) string { return "http://" + host + "/?key=" + g.key }

func (g *guarded) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	byKey := g.same(q.Get("key"))
	if cookie, err := r.Cookie(g.cookie); !byKey && err == nil && g.same(cookie.Value) {
		g.page.ServeHTTP(w, r)
		return
	}
	view.Protect(w)
	if !byKey {
		http.Error(w, "open the page with the address that ctrlkit view has printed: it has a key", http.StatusUnauthorized)
		return
	}
	http.SetCookie(w, &http.Cookie{Name: g.cookie, Value: g.key, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
	q.Del("key")
	path := "/" + strings.TrimLeft(r.URL.Path, `/\`) // two slashes would lead to another host
	http.Redirect(w, r, (&url.URL{Path: path, RawQuery: q.Encode()}).String(), http.StatusSeeOther)
}

func (g *guarded) same(key string) bool {
	return subtle.ConstantTimeCompare([]byte(key), []byte(g.key)) == 1
}
