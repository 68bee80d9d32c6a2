// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/bench/process"
	"github.com/ctrlkit/ctrlkit/bench/table"
	"github.com/ctrlkit/ctrlkit/bench/widget"
	"github.com/ctrlkit/ctrlkit/controlplane"
	"github.com/ctrlkit/ctrlkit/install"
)

// policyLabel is the label of namespaces with the admission policy.
const policyLabel = "bench.ctrlkit.dev/policy"

// A cluster is a control plane, a client of a user, and the programs of the operators.
type cluster struct {
	user       client.WithWatch
	dir        string // of programs and the kubeconfig
	kubeconfig string
	version    string
	plane      *controlplane.ControlPlane
}

// newCluster builds the operators and starts a control plane without controllers.
func newCluster(ctx context.Context, selected []rival, progress io.Writer) (*cluster, error) {
	c := &cluster{}
	var err error
	if c.dir, err = os.MkdirTemp("", "ctrlkit-bench-"); err != nil {
		return nil, err
	}
	if err := c.start(ctx, selected, progress); err != nil {
		return nil, errors.Join(err, c.stop())
	}
	return c, nil
}

func (c *cluster) stop() error {
	var err error
	if c.plane != nil {
		err = errors.Join(c.plane.Err(), c.plane.Stop())
	}
	return errors.Join(err, os.RemoveAll(c.dir))
}

func (c *cluster) start(ctx context.Context, selected []rival, progress io.Writer) error {
	for _, r := range selected {
		if err := c.build(ctx, r, progress); err != nil {
			return err
		}
	}
	fmt.Fprintln(progress, "starting the control plane")
	var err error
	c.plane, err = controlplane.Start(ctx, controlplane.Options{CRDs: []string{filepath.Join("widget", "crd.yaml")}, Progress: progress})
	if err != nil {
		return err
	}
	c.kubeconfig = c.plane.Kubeconfig()
	scheme, err := widget.NewScheme()
	if err != nil {
		return err
	}
	config := c.plane.Config()
	config.QPS = -1
	if c.user, err = client.NewWithWatch(config, client.Options{Scheme: scheme}); err != nil {
		return err
	}
	versions, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	server, err := versions.ServerVersion()
	if err != nil {
		return fmt.Errorf("asking for the version of the API server: %w", err)
	}
	c.version = server.GitVersion
	return c.installPolicy(ctx)
}

// program returns the file of the program of a rival.
func (c *cluster) program(r rival) string {
	return filepath.Join(c.dir, filepath.Base(cmp.Or(r.dir, "operator")))
}

// build builds the program of a rival, unless it is built.
func (c *cluster) build(ctx context.Context, r rival, progress io.Writer) error {
	program := c.program(r)
	if _, err := os.Stat(program); err == nil {
		return nil
	}
	fmt.Fprintf(progress, "building the program of %s\n", r.name)
	build := exec.CommandContext(ctx, "go", "build", "-o", program, ".")
	if build.Dir = cmp.Or(r.dir, "operator"); r.dir != "" {
		build.Env = append(os.Environ(), "GOWORK=off")
	}
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building the program of %s, in the directory bench (-operators leaves it out): %w\n%s", r.name, err, out)
	}
	return nil
}

// installPolicy installs the admission policy for the finalizer of Widgets, in namespaces that have
// the label, and returns when it is in effect.
func (c *cluster) installPolicy(ctx context.Context) error {
	policy, binding, err := install.FinalizerPolicy(widget.Resource, widget.Finalizer)
	if err != nil {
		return err
	}
	binding.Spec.MatchResources = &admissionv1.MatchResources{
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{policyLabel: "true"}},
	}
	if err := errors.Join(c.user.Create(ctx, policy), c.user.Create(ctx, binding)); err != nil {
		return fmt.Errorf("installing the admission policy: %w", err)
	}
	namespace, err := c.namespace(ctx, true)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	// The API server does not report when it has compiled a policy: retry until it works.
	return wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		probe := newWidget(namespace, "probe")
		err := c.user.Create(ctx, probe, client.DryRunAll)
		return err == nil && len(probe.Finalizers) > 0, nil // the API server may refuse while it compiles the policy
	})
}

// namespace creates a namespace. Nothing deletes it: there is no controller that would.
func (c *cluster) namespace(ctx context.Context, policy bool) (string, error) {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "bench-"}}
	if policy {
		ns.Labels = map[string]string{policyLabel: "true"}
	}
	if err := c.user.Create(ctx, ns); err != nil {
		return "", fmt.Errorf("creating a namespace: %w", err)
	}
	return ns.Name, nil
}

// run starts an operator. The settings have no more than its namespace and how it runs.
func (c *cluster) run(ctx context.Context, r rival, settings process.Settings) (*process.Process, error) {
	settings.Kubeconfig, settings.Operator = c.kubeconfig, r.operator
	return process.Start(ctx, c.program(r), settings)
}

// about returns what the figures depend on.
func (c *cluster) about(ctx context.Context, wanted command, load string) ([]table.Fact, error) {
	etcd, err := firstLine(exec.CommandContext(ctx, c.plane.Assets().Program("etcd"), "--version"))
	if err != nil {
		return nil, err
	}
	modules, err := c.modules()
	if err != nil {
		return nil, err
	}
	commit, err := firstLine(exec.CommandContext(ctx, "git", "describe", "--always", "--dirty"))
	if err != nil {
		commit = "unknown"
	}
	return append([]table.Fact{
		{Name: "ctrlkit", Value: commit},
		{Name: "Kubernetes", Value: c.version + ", without controllers"},
		{Name: "etcd", Value: strings.TrimPrefix(etcd, "etcd Version: ") + ", without fsync"},
		{Name: "Go", Value: runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH},
	}, append(modules,
		table.Fact{Name: "cores", Value: fmt.Sprint(runtime.NumCPU()) + processor() + ", shared by the control plane, the operator and the client"},
		table.Fact{Name: "load before", Value: load},
		table.Fact{Name: "rounds", Value: fmt.Sprintf("%d, operators in turns; a cell is a median (least..most)", wanted.sizes.rounds)},
		table.Fact{Name: "relative", Value: "to " + wanted.reference + " in the same round; its own column has the figures"},
	)...), nil
}

// modules returns the versions of the libraries that the operators are built with.
func (c *cluster) modules() ([]table.Fact, error) {
	var facts []table.Fact
	for _, program := range []string{"operator", "wrangler"} {
		info, err := buildinfo.ReadFile(filepath.Join(c.dir, program))
		if errors.Is(err, os.ErrNotExist) {
			continue // not selected
		}
		if err != nil {
			return nil, err
		}
		for _, m := range info.Deps {
			fact := table.Fact{Name: path.Base(m.Path), Value: m.Version}
			switch m.Path {
			case "github.com/rancher/wrangler/v3":
				fact.Name = "wrangler"
			case "k8s.io/client-go", "sigs.k8s.io/controller-runtime":
			default:
				continue
			}
			if !slices.Contains(facts, fact) {
				facts = append(facts, fact)
			}
		}
	}
	return facts, nil
}

func firstLine(cmd *exec.Cmd) (string, error) {
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("asking %s: %w", filepath.Base(cmd.Path), err)
	}
	line, _, _ := strings.Cut(string(out), "\n")
	return strings.TrimSpace(line), nil
}

// processor returns the name of the processor, if the system has it where Linux does.
func processor() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return ", " + strings.TrimSpace(value)
		}
	}
	return ""
}

// loadAverage returns how many threads wanted a core in the last minute.
func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if fields := strings.Fields(string(text)); err == nil && len(fields) > 0 {
		return fields[0]
	}
	return "unknown"
}
