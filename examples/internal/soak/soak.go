// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/controlplane"
)

const (
	module = "github.com/ctrlkit/ctrlkit/examples"

	// settleLimit is how long the operator may take to bring all objects into their desired state:
	// after its start, after the chaos, after the deletion.
	settleLimit = time.Minute
	// steadyAfter is the time in the quiet phase after which no condition may change.
	steadyAfter = 30 * time.Second

	// Memory is steady if, at the end of the quiet phase, it is at most memoryFactor times what it
	// was memoryAfter its beginning. It is not checked if the phase is shorter than twice that
	// time.
	memoryAfter  = time.Minute
	memoryFactor = 1.3
)

// A soaking is the soak of one example.
type soaking struct {
	*options
	example
	dir      string // of the example
	temp     string
	progress *progress

	plane     *controlplane.ControlPlane
	user      client.WithWatch
	system    *system // nil if there is nothing outside of the cluster
	operators []*operator
	subject   subject
	editor    *editor

	checks []check
	memory struct{ start, chaos, quiet, end int64 } // in bytes; 0 is not known

	mu    sync.Mutex // guards what follows
	phase string
	until time.Time // the end of the phase
}

// soak soaks one example. An error means that the soak could not be done, which says nothing about
// the operator.
func soak(ctx context.Context, o *options, e example, p *progress) (_ *report, err error) {
	s := &soaking{options: o, example: e, progress: p}
	if s.temp, err = os.MkdirTemp("", "ctrlkit-soak-"); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(s.temp)) }()
	binary, err := s.build(ctx)
	if err != nil {
		return nil, err
	}
	logFile, err := s.logFile()
	if err != nil {
		return nil, err
	}
	defer logFile.Close() //nolint:errcheck // a log that is cut short is no reason to fail
	if s.startSystem != nil {
		if s.system, err = s.startSystem(); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, s.system.close()) }()
	}
	if err := s.startPlane(ctx); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.plane.Stop()) }()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-s.plane.Done():
			cancel(s.plane.Err())
		case <-ctx.Done():
		}
	}()
	if err := s.run(ctx, binary, logFile); err != nil {
		if cause := context.Cause(ctx); cause != nil && ctx.Err() != nil {
			return nil, fmt.Errorf("not finished: %w", cause)
		}
		return nil, err
	}
	r := &report{example: e.name, edits: s.editor.last}
	errorCount := 0
	for _, o := range s.operators {
		n, samples := o.log.found()
		errorCount, r.errors = errorCount+n, append(r.errors, samples...)
	}
	r.checks = append(s.checks, figure("errors in the log", "%d", errorCount))
	return r, nil
}

// build builds the program of the example and finds its directory.
func (s *soaking) build(ctx context.Context) (binary string, err error) {
	s.progress.line("building the operator")
	pkg := module + "/" + s.name
	list := exec.CommandContext(ctx, "go", "list", "-f", "{{.Dir}}", pkg)
	var stderr bytes.Buffer
	list.Stderr = &stderr
	dir, err := list.Output()
	if err != nil {
		return "", fmt.Errorf("looking for %s: %w\n%s", pkg, err, stderr.String())
	}
	s.dir = strings.TrimSpace(string(dir))
	binary = filepath.Join(s.temp, "operator")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", binary, pkg).CombinedOutput(); err != nil {
		return "", fmt.Errorf("building %s: %w\n%s", pkg, err, out)
	}
	return binary, nil
}

func (s *soaking) logFile() (io.WriteCloser, error) {
	dir := s.temp
	if s.logs != "" {
		dir = filepath.Join(s.logs, s.name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
	}
	return os.Create(filepath.Join(dir, "operator.log"))
}

// startPlane starts a control plane and installs what a user installs before the operator.
func (s *soaking) startPlane(ctx context.Context) error {
	s.progress.line("starting a control plane")
	options := controlplane.Options{
		Parts: s.parts, CRDs: []string{filepath.Join(s.dir, "config", "crd", "bases")}, Progress: s.progress.out,
	}
	if s.logs != "" {
		options.LogDir = filepath.Join(s.logs, s.name)
	}
	if s.replicas > 1 {
		file := filepath.Join(s.temp, "audit.yaml")
		if err := os.WriteFile(file, []byte(auditPolicy), 0o600); err != nil {
			return err
		}
		options.Flags = map[string][]string{"kube-apiserver": {"--audit-policy-file=" + file, "--audit-log-path=" + s.auditLog(), "--audit-log-maxsize=20000"}}
	}
	plane, err := controlplane.Start(ctx, options)
	if err != nil {
		return err
	}
	s.plane = plane
	if err := s.install(ctx); err != nil {
		return errors.Join(err, plane.Stop())
	}
	return nil
}

func (s *soaking) install(ctx context.Context) error {
	scheme, err := newScheme()
	if err != nil {
		return err
	}
	if s.user, err = client.NewWithWatch(s.plane.Config(), client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("reaching the control plane: %w", err)
	}
	for _, name := range []string{namespace, outputsNamespace} {
		if err := create(ctx, s.user, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			return fmt.Errorf("creating namespace %s: %w", name, err)
		}
	}
	// The namespace of the ServiceAccount stands in the first file.
	if err := applyFiles(ctx, s.user, filepath.Join(s.dir, "config", "rbac"), filepath.Join(s.dir, "config", "admission")); err != nil {
		return err
	}
	return s.writeKubeconfig()
}

func (s *soaking) auditLog() string { return filepath.Join(s.temp, "audit.log") }

// home returns the namespace of the operator.
func (s *soaking) home() string { return s.account + "-system" }

func (s *soaking) kubeconfig() string { return filepath.Join(s.temp, "kubeconfig") }

// writeKubeconfig writes the file with which the operator reaches the API server, as the
// ServiceAccount that the role is bound to.
func (s *soaking) writeKubeconfig() error {
	config, err := s.plane.AddUser("system:serviceaccount:"+s.home()+":"+s.account+"-operator", "system:serviceaccounts", "system:serviceaccounts:"+s.home())
	if err != nil {
		return err
	}
	if err := clientcmd.WriteToFile(kubeconfigFor(config), s.kubeconfig()); err != nil {
		return fmt.Errorf("writing the kubeconfig of the operator: %w", err)
	}
	return nil
}

func kubeconfigFor(config *rest.Config) clientcmdapi.Config {
	const name = "soak"
	return clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{name: {Server: config.Host, CertificateAuthorityData: config.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{name: {ClientCertificateData: config.CertData, ClientKeyData: config.KeyData}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}},
		CurrentContext: name,
	}
}

// run does the soak, in a running control plane.
func (s *soaking) run(ctx context.Context, binary string, log io.Writer) error {
	s.subject = s.example.subject(s)
	s.editor = &editor{user: s.user}
	s.operators = s.newOperators(binary, log)
	if s.system != nil {
		s.system.front.expect(s.operators)
	}
	if err := s.subject.create(ctx); err != nil {
		return err
	}
	operatorContext, stopOperators := context.WithCancel(ctx)
	var running sync.WaitGroup
	for _, o := range s.operators {
		running.Go(func() { o.run(operatorContext) })
	}
	defer func() {
		stopOperators()
		running.Wait()
	}()
	defer s.progress.show(s.status)()
	for _, phase := range []func(context.Context) error{s.begin, s.chaosPhase, s.quietPhase, s.end} {
		if err := phase(ctx); err != nil {
			return err
		}
	}
	return nil
}

// enter begins a phase that lasts for about d.
func (s *soaking) enter(phase string, d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.phase, s.until = phase, time.Now().Add(d)
}

// status returns the line of progress.
func (s *soaking) status() string {
	s.mu.Lock()
	phase := s.phase
	if remaining := time.Until(s.until); remaining > 0 {
		phase += fmt.Sprintf(", %s remaining", remaining.Round(time.Second))
	}
	s.mu.Unlock()
	return fmt.Sprintf("%s: %s, %d kills, %d edits, %s of memory",
		phase, s.subject.progress(), s.killed(), s.editor.count(), megabytes(s.residentMemory()))
}

// megabytes formats a number of bytes.
func megabytes(n int64) string {
	if n == 0 {
		return "?"
	}
	return fmt.Sprintf("%.0f MB", float64(n)/1e6)
}

// begin waits until all objects are in their desired state for the first time.
func (s *soaking) begin(ctx context.Context) error {
	s.enter("start", settleLimit)
	took, violations, err := s.settle(ctx)
	if err != nil {
		return err
	}
	for i := range violations {
		violations[i].lane = noLane // no edit has been made yet
	}
	s.checks = append(s.checks, check{name: "desired state after the start", seen: "after " + took, violations: violations})
	s.memory.start = s.residentMemory()
	return nil
}

// settle waits until the cluster matches the model. It returns how long that took, and the
// differences that remain at the limit.
func (s *soaking) settle(ctx context.Context) (took string, last []violation, err error) {
	start := time.Now()
	for {
		checks, err := s.subject.compare(ctx, time.Time{})
		if err != nil {
			return "", nil, err
		}
		last = nil
		for _, c := range checks {
			last = append(last, c.violations...)
		}
		waited := time.Since(start)
		if len(last) == 0 || waited > settleLimit {
			return waited.Round(100 * time.Millisecond).String(), last, nil
		}
		if err := sleepUntil(ctx, time.Now().Add(250*time.Millisecond)); err != nil {
			return "", nil, err
		}
	}
}

// chaosPhase kills the operator and edits its objects.
func (s *soaking) chaosPhase(ctx context.Context) error {
	edits := s.subject.edits()
	s.enter("chaos", s.chaos)
	start := time.Now()
	var group sync.WaitGroup
	group.Go(func() { s.editor.run(ctx, edits, start) })
	err := s.disturb(ctx, start)
	group.Wait() // with the operator still running: an object is created again only when its finalizer is removed
	s.memory.chaos = s.residentMemory()
	s.checks = append(s.checks,
		check{name: "edits", seen: fmt.Sprintf("%d of %d made", s.editor.count()-len(s.editor.failures), len(edits)), violations: s.editor.failures})
	return errors.Join(err, ctx.Err())
}

// disturb kills the operator at random times, or does the actions of replicas.
func (s *soaking) disturb(ctx context.Context, start time.Time) error {
	random := newRandom(s.seed, "kills of "+s.name)
	if s.replicas > 1 {
		r := &replicas{soaking: s, random: random}
		if err := r.chaos(ctx, s.actions.plan(random), start); err != nil {
			return err
		}
		found, err := r.checks()
		s.checks = append(s.checks, found...)
		return err
	}
	kills := planKills(random, s.chaos, s.kills)
	for _, k := range kills[:len(kills)-1] {
		if err := sleepUntil(ctx, start.Add(k.at)); err != nil {
			return err
		}
		if err := s.operators[0].kill(ctx, k.down); err != nil {
			return err
		}
	}
	return sleepUntil(ctx, start.Add(s.chaos)) // the quiet begins with the last kill
}

// quietPhase runs the operator without kills and edits.
func (s *soaking) quietPhase(ctx context.Context) error {
	s.enter("quiet", s.quiet)
	metrics, err := s.killAll(ctx)
	if err != nil {
		return err
	}
	start := time.Now()
	end := start.Add(s.quiet)
	took, violations, err := s.settle(ctx)
	if err != nil {
		return err
	}
	s.checks = append(s.checks, check{name: "desired state after the chaos", seen: "after " + took, violations: violations})
	steady := s.quiet > steadyAfter
	var before map[string]int
	if steady {
		if err := sleepUntil(ctx, start.Add(steadyAfter)); err != nil {
			return err
		}
		if before, err = requestsAt(ctx, metrics); err != nil {
			return err
		}
	}
	if s.quiet >= 2*memoryAfter {
		if err := sleepUntil(ctx, start.Add(memoryAfter)); err != nil {
			return err
		}
		s.memory.quiet = s.residentMemory()
	}
	if err := sleepUntil(ctx, end); err != nil {
		return err
	}
	s.memory.end = s.residentMemory()
	var steadySince time.Time
	if steady {
		steadySince = start.Add(steadyAfter)
		after, err := requestsAt(ctx, metrics)
		if err != nil {
			return err
		}
		s.checks = append(s.checks, figure("requests in the quiet phase", "%s in %s", requestsBetween(before, after), (s.quiet-steadyAfter).Round(time.Second)))
	}
	checks, err := s.subject.compare(ctx, steadySince)
	s.checks = append(s.checks, checks...)
	return err
}

// end deletes all objects and waits until none remains.
func (s *soaking) end(ctx context.Context) error {
	s.enter("deletion", settleLimit)
	s.checks = append(s.checks, s.memoryCheck())
	if err := s.subject.deleteAll(ctx); err != nil {
		return err
	}
	start := time.Now()
	for {
		remaining, err := s.subject.remaining(ctx)
		if err != nil {
			return err
		}
		waited := time.Since(start)
		if len(remaining) > 0 && waited <= settleLimit {
			if err := sleepUntil(ctx, time.Now().Add(250*time.Millisecond)); err != nil {
				return err
			}
			continue
		}
		s.checks = append(s.checks,
			check{name: "remains after the deletion", seen: fmt.Sprintf("%d, after %s", len(remaining), waited.Round(100*time.Millisecond)), violations: remaining},
			figure("kills", "%d", s.killed()),
			check{name: "ends of the operator by itself", violations: s.ends()})
		s.enter("done", 0)
		return nil
	}
}

// memoryCheck compares the memory at the end of the quiet phase with that at its beginning.
func (s *soaking) memoryCheck() check {
	m := s.memory
	c := check{name: "memory", seen: fmt.Sprintf("%s at the start, %s after the chaos, %s at the end", megabytes(m.start), megabytes(m.chaos), megabytes(m.end))}
	if m.quiet == 0 || m.end == 0 {
		c.figure = true // the quiet phase is too short, or there is no /proc
		return c
	}
	c.seen = fmt.Sprintf("%s at the start, %s after the chaos, %s %s later, %s at the end",
		megabytes(m.start), megabytes(m.chaos), megabytes(m.quiet), memoryAfter, megabytes(m.end))
	if float64(m.end) > memoryFactor*float64(m.quiet) {
		c.violations = []violation{{object: "operator", lane: noLane, evidence: fmt.Sprintf(
			"%s at the end of the quiet phase, %s one minute into it: want at most %.1f times as much", megabytes(m.end), megabytes(m.quiet), memoryFactor)}}
	}
	return c
}
