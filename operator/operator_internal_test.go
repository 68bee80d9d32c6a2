// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// withCluster has ctrl.GetConfig find a cluster that nothing listens for.
func withCluster(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubeconfig")
	cluster := clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"c": {Server: "http://127.0.0.1:1"}}, AuthInfos: map[string]*clientcmdapi.AuthInfo{"u": {}},
		Contexts: map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u"}}, CurrentContext: "x",
	}
	if err := clientcmd.WriteToFile(cluster, path); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", path)
}

// runMain runs main with a context that is done, so that it ends at once.
func runMain(t *testing.T, o Operator, args ...string) (code int, printed string) {
	t.Helper()
	var out bytes.Buffer
	flags := flag.NewFlagSet("operator", flag.ContinueOnError)
	flags.SetOutput(&out)
	code = o.main(flags, args, &out, func() context.Context {
		ctx, stop := context.WithCancel(t.Context())
		stop()
		return ctx
	})
	return code, out.String()
}

func TestMainFlags(t *testing.T) {
	withCluster(t)
	poll, reached := "", false
	var options ctrl.Options
	all := Operator{
		Name:    "databases.example.com",
		Flags:   func(flags *flag.FlagSet) { flags.StringVar(&poll, "poll", "1m", "how often") },
		Options: func(o *ctrl.Options) { options = *o },
		Controls: []func(ctrl.Manager) error{func(ctrl.Manager) error {
			reached = true
			return errors.New("no controllers today")
		}},
	}
	code, printed := runMain(t, all, "--leader-elect", "--leader-election-namespace=operators", "--poll=2m", "--zap-log-level=error", "--metrics-secure")
	if want := "error: adding the controllers: no controllers today\n"; code != 1 || printed != want || !reached {
		t.Errorf("it has ended with %d and %q, want 1 and %q", code, printed, want)
	}
	if o := options; o.LeaderElectionID != all.Name || !o.LeaderElection || !o.LeaderElectionReleaseOnCancel || o.LeaderElectionNamespace != "operators" ||
		poll != "2m" || o.Metrics.BindAddress != "0" || o.HealthProbeBindAddress != "0" || !o.Metrics.SecureServing {
		t.Errorf("the options are %+v, and the poll is %s", o, poll)
	}
	for _, tt := range []struct {
		args, printed string
		code          int
	}{
		{"--none", "flag provided but not defined: -none", 2},
		{"--help", "-leader-election-namespace namespace", 0},
		{"--shard-ring=things", "flag provided but not defined: -shard-ring", 2},
	} {
		if code, printed := runMain(t, all, tt.args); code != tt.code || !strings.Contains(printed, tt.printed) {
			t.Errorf("%s: it has ended with %d and %q, want %d and %q", tt.args, code, printed, tt.code, tt.printed)
		}
	}
}

func TestMainFindsNoCluster(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	t.Setenv("HOME", t.TempDir())
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	code, printed := runMain(t, Operator{Name: "databases.example.com"})
	if code != 1 || !strings.HasPrefix(printed, "error: finding a cluster: ") {
		t.Errorf("it has ended with %d and %q", code, printed)
	}
}

// The flag of a ring has precedence, and the operator itself is not changed.
func TestMainOfShard(t *testing.T) {
	withCluster(t)
	sharded := Operator{Name: "databases.example.com", Sharding: &ShardOptions{Name: "a", Namespace: "operators"}}
	code, printed := runMain(t, sharded, "--shard-ring=things", "--shard-name=b")
	if code != 1 || !strings.HasPrefix(printed, `error: creating the manager: sharding by the ring "things": `) || *sharded.Sharding != (ShardOptions{Name: "a", Namespace: "operators"}) {
		t.Errorf("it has ended with %d and %q; the options are %+v", code, printed, *sharded.Sharding)
	}
}

// With a filter, metrics are served over TLS and behind it, unless a flag says otherwise.
func TestMainSecuresMetrics(t *testing.T) {
	withCluster(t)
	errRefused := errors.New("who are you?")
	for arg, want := range map[string]bool{"--metrics-secure": true, "--leader-elect=false": true, "--metrics-secure=false": false} {
		var metrics server.Options
		secured := Operator{
			Name:          "databases.example.com",
			SecureMetrics: func(*rest.Config, *http.Client) (server.Filter, error) { return nil, errRefused },
			Options:       func(o *ctrl.Options) { metrics = o.Metrics },
			Controls:      []func(ctrl.Manager) error{func(ctrl.Manager) error { return errRefused }},
		}
		runMain(t, secured, arg)
		_, err := metrics.FilterProvider(nil, nil)
		if metrics.SecureServing != want || errors.Is(err, errRefused) != want {
			t.Errorf("%s: over TLS: %t, the error of the filter is %v; want %t", arg, metrics.SecureServing, err, want)
		}
	}
}

// Around has the flags, and runs the manager while what it has started runs.
func TestMainAround(t *testing.T) {
	withCluster(t)
	var steps []string
	address := ""
	o := Operator{
		Name:  "databases.example.com",
		Flags: func(flags *flag.FlagSet) { flags.StringVar(&address, "address", "", "where to listen") },
		Around: func(ctx context.Context, run func(context.Context) error) (err error) {
			steps = append(steps, "starts at "+address)
			defer func() { err = errors.Join(err, errors.New("can't be stopped")) }()
			return run(ctx)
		},
		Controls: []func(ctrl.Manager) error{func(ctrl.Manager) error {
			steps = append(steps, "makes the manager")
			return nil
		}},
	}
	code, printed := runMain(t, o, "--address=here")
	if got := strings.Join(steps, ", "); got != "starts at here, makes the manager" || code != 1 || printed != "error: can't be stopped\n" {
		t.Errorf("%s; it has ended with %d and %q", got, code, printed)
	}
	o.Around = nil
	if code, printed := runMain(t, o); code != 0 || printed != "" {
		t.Errorf("it has ended with %d and %q, want 0", code, printed)
	}
}

// The manager has what makes an operator smaller, unless the options say otherwise.
func TestManagerDefaults(t *testing.T) {
	own := func(obj any) (any, error) { return obj, nil }
	for name, tt := range map[string]struct {
		transform toolscache.TransformFunc
		kept      int
	}{
		"by default": {nil, 1},
		"its own":    {own, 2},
	} {
		kept := -1
		o := Operator{Name: "databases.example.com", Observe: []Option{}, Options: func(options *ctrl.Options) {
			options.Cache.DefaultTransform = tt.transform
			options.NewCache = func(config *rest.Config, of cache.Options) (cache.Cache, error) {
				obj := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{
					{Manager: "databases", Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(`{"f:data":{"f:a":{}}}`)},
					{Manager: "kubectl-edit", Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: metav1.NewFieldsV1(`{"f:data":{"f:b":{}}}`)},
				}}}
				_, err := of.DefaultTransform(obj)
				kept = len(obj.ManagedFields)
				return nil, errors.Join(err, errors.New("no cache today"))
			}
		}}
		_, err := o.Manager(&rest.Config{Host: "http://127.0.0.1:1"}, ctrl.Options{})
		if err == nil || kept != tt.kept {
			t.Errorf("%s: %d entries of the managed fields are kept, want %d; error %v", name, kept, tt.kept, err)
		}
	}
}
